"""Whole CUDA programs, from their files to their run.

build    → files, options    what the program is made of; the cache may have it
         → plain             if not: rewritten, compiled and linked
            → runtime        with the parts of the runtime that it uses
            → rewrite        every change of its text
            → messages       what the compiler refuses, in the program's own words
observed → build, run, verdict, report    the same under an instrument
toolkit  → make, nvcc, rebuild            for makefiles and CMake
"""

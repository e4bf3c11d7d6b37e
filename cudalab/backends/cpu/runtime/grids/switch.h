// Switching from one stack to another, in a few instructions on the processors known here.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(CUDALAB_PORTABLE_SWITCH)
#define CUDALAB_FAST_SWITCH 1
#else
#include <ucontext.h>
#define CUDALAB_FAST_SWITCH 0
#endif

namespace cudalab {

extern "C" void cudalab_fiber_main();  // where a fiber's stack begins
extern "C" void cudalab_block_main();  // where a block's stack begins

#if CUDALAB_FAST_SWITCH

typedef void* Context;  // the stack pointer; what must survive lies on the stack

extern "C" {
#pragma GCC visibility push(hidden)
void cudalab_switch(Context* from, Context to);
void cudalab_fiber_start();
void cudalab_block_start();
#pragma GCC visibility pop
}

// Only callee-saved registers need saving. The jump instead of a `ret` matters: the return-stack
// predictor would expect the last caller, and every switch would be mispredicted.
#if defined(__APPLE__)
#define SYMBOL(name) "_" name
#define FUNCTION(name) ".globl _" name "\n_" name ":\n"
#else
#define SYMBOL(name) name
#define FUNCTION(name) ".globl " name "\n.hidden " name "\n" name ":\n"
#endif
// clang-format off
#if defined(__x86_64__)
asm(".text\n.p2align 4\n"
    FUNCTION("cudalab_switch")
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\n"
    "movq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
    "popq %rcx\n"
    "jmpq *%rcx\n"
    FUNCTION("cudalab_fiber_start") "call " SYMBOL("cudalab_fiber_main") "\nud2\n"
    FUNCTION("cudalab_block_start") "call " SYMBOL("cudalab_block_main") "\nud2\n");
const int FRAME_WORDS = 9, ENTRY_WORD = 6;  // saved registers, entry, padding to 16 bytes
#else
asm(".text\n.p2align 4\n"
    FUNCTION("cudalab_switch")
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
    "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
    "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\n"
    "mov sp, x1\n"
    "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
    "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
    "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
    "add sp, sp, #160\n"
    "br x30\n"
    FUNCTION("cudalab_fiber_start") "bl " SYMBOL("cudalab_fiber_main") "\nbrk #1\n"
    FUNCTION("cudalab_block_start") "bl " SYMBOL("cudalab_block_main") "\nbrk #1\n");
const int FRAME_WORDS = 20, ENTRY_WORD = 11;  // x19 … x30 (the entry), d8 … d15
#endif
// clang-format on

// A frame as cudalab_switch leaves it, with everything zero but where to go.
static void new_context(Context* context, char* stack_bottom, size_t bytes, void (*entry)()) {
    void** frame = (void**)((uintptr_t)(stack_bottom + bytes) & ~(uintptr_t)15) - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    frame[ENTRY_WORD] = (void*)entry;
    *context = frame;
}
static inline void switch_to(Context* from, Context to) {
    cudalab_switch(from, to);
}
static inline void leave_to(Context to) {
    Context dropped;
    cudalab_switch(&dropped, to);
}
#define FIBER_ENTRY cudalab_fiber_start
#define BLOCK_ENTRY cudalab_block_start

#else  // any other processor: POSIX contexts, slower because they also switch the signal mask

typedef ucontext_t* Context;  // allocated once for each stack

static void new_context(Context* context, char* stack_bottom, size_t bytes, void (*entry)()) {
    if (!*context) *context = (Context)calloc(1, sizeof(ucontext_t));
    getcontext(*context);
    (*context)->uc_stack.ss_sp = stack_bottom;
    (*context)->uc_stack.ss_size = bytes;
    (*context)->uc_link = nullptr;
    makecontext(*context, entry, 0);
}
static inline void switch_to(Context* from, Context to) {
    if (!*from) *from = (Context)calloc(1, sizeof(ucontext_t));
    swapcontext(*from, to);
}
static inline void leave_to(Context to) {
    setcontext(to);
}
#define FIBER_ENTRY cudalab_fiber_main
#define BLOCK_ENTRY cudalab_block_main

#endif

}  // namespace cudalab

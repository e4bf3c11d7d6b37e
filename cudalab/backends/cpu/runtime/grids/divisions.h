// Integer divisions that x86 interrupts: by zero, and the least number by -1. A GPU goes on with a
// value. Other processors go on, too.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <ucontext.h>
#endif

namespace cudalab {

// A division instruction and its operands.
struct Division {
    const unsigned char* end;  // of the instruction
    unsigned bytes;            // of the operands
    uint64_t divisor;
    uint64_t quotient, remainder;  // on a GPU
};

#if defined(__x86_64__) && defined(__linux__)

// Reads the instruction at which the processor stopped. False if it is no division.
static bool read_division(const void* context, Division& division) {
    static const int REGISTERS[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                    REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                    REG_R12, REG_R13, REG_R14, REG_R15};
    const greg_t* values = ((const ucontext_t*)context)->uc_mcontext.gregs;
    const unsigned char* at = (const unsigned char*)values[REG_RIP];
    bool is_16_bit = false, in_thread = false;
    for (;; ++at) {
        if (*at == 0x66)
            is_16_bit = true;
        else if (*at == 0x64)  // relative to the thread's own variables
            in_thread = true;
        else
            break;
    }
    const unsigned rex = (*at & 0xf0) == 0x40 ? *at++ : 0;
    if ((*at & 0xfe) != 0xf6) return false;
    division.bytes = !(*at & 1) ? 1 : rex & 8 ? 8 : is_16_bit ? 2 : 4;
    ++at;
    const unsigned modrm = *at++, mode = modrm >> 6;
    if ((modrm >> 3 & 7) < 6) return false;  // 6: div, 7: idiv
    const char* operand;
    uint64_t address = 0;
    unsigned base = (modrm & 7) | (rex & 1) << 3;
    if (mode == 3) {
        const bool high = division.bytes == 1 && !rex && base >= 4;  // ah … bh
        operand = (const char*)&values[REGISTERS[high ? base - 4 : base]] + high;
    } else {
        bool has_base = true, relative = false;
        if ((modrm & 7) == 4) {
            const unsigned sib = *at++, index = (sib >> 3 & 7) | (rex & 2) << 2;
            if (index != 4) address = (uint64_t)values[REGISTERS[index]] << (sib >> 6);
            base = (sib & 7) | (rex & 1) << 3;
            has_base = (sib & 7) != 5 || mode;
        } else if ((modrm & 7) == 5 && !mode) {
            has_base = false, relative = true;
        }
        if (has_base) address += (uint64_t)values[REGISTERS[base]];
        int32_t offset = 0;
        if (mode == 1) {
            offset = (signed char)*at++;
        } else if (mode == 2 || !has_base) {
            memcpy(&offset, at, 4);
            at += 4;
        }
        address += (uint64_t)(int64_t)offset;
        if (relative) address += (uint64_t)at;
        if (in_thread) {
            uint64_t thread;
            __asm__("mov %%fs:0, %0" : "=r"(thread));
            address += thread;
        }
        operand = (const char*)address;
    }
    division.end = at;
    division.divisor = 0;
    memcpy(&division.divisor, operand, division.bytes);
    const uint64_t dividend = (uint64_t)values[REG_RAX];
    division.quotient = division.remainder = ~0ull;
    if (division.divisor)  // it is -1
        division.quotient = dividend, division.remainder = 0;
    else if (division.bytes == 8 && dividend >> 32 == 0)  // which a GPU divides as 32 bits
        division.quotient = division.remainder = 0xffffffff;
    return true;
}

// Gives the interrupted division the value that it has on a GPU, and goes on behind it.
static void complete(const Division& division, void* context) {
    greg_t* values = ((ucontext_t*)context)->uc_mcontext.gregs;
    uint64_t& low = (uint64_t&)values[REG_RAX];
    uint64_t& high = (uint64_t&)values[REG_RDX];
    const uint64_t quotient = division.quotient, remainder = division.remainder;
    switch (division.bytes) {
        case 1:
            low = (low & ~0xffffull) | (quotient & 0xff) | (remainder & 0xff) << 8;
            break;
        case 2:
            low = (low & ~0xffffull) | (quotient & 0xffff);
            high = (high & ~0xffffull) | (remainder & 0xffff);
            break;
        case 4:
            low = (uint32_t)quotient, high = (uint32_t)remainder;
            break;
        default:
            low = quotient, high = remainder;
    }
    values[REG_RIP] = (greg_t)division.end;
}

#else

static bool read_division(const void*, Division&) {
    return false;
}
static void complete(const Division&, void*) {}

#endif

}  // namespace cudalab

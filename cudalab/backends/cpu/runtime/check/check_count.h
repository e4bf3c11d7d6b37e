// Check mode: the cost of accesses and branches by line.
#pragma once

#include "check_memory.h"

namespace cudalab {

const unsigned SECTOR_BYTES = 32, SECTORS_PER_LINE = 4, MAX_STEPS = 256, MAX_WAYS = 1024;

// The addresses of one request, by lane.
struct Request {
    unsigned lanes;  // mask
    unsigned bytes;  // per lane
    unsigned turns;  // of Turns, for atomic operations
    uintptr_t address[32];
};

struct Cost {
    unsigned sectors, ideal_sectors;     // global memory
    unsigned lines, partial;             // of 128 bytes; sectors that it covers in part
    unsigned wavefronts, ideal, degree;  // shared memory
    unsigned same_address;               // maximum number of lanes
};

// The words of the lanes in `lanes`, by bank: each distinct word needs a pass.
struct Banks {
    unsigned count[32] = {};
    uintptr_t words[32][32];

    unsigned add(uintptr_t word, unsigned bank) {
        for (unsigned i = 0; i < count[bank]; ++i)
            if (words[bank][i] == word) return count[bank];
        words[bank][count[bank]++] = word;
        return count[bank];
    }
};

// Passes over 32 banks of 4 bytes for the lanes in `lanes`.
static unsigned passes(const Request& r, unsigned lanes) {
    Banks banks;
    unsigned most = 0;
    for (unsigned left = lanes; left; left &= left - 1) {
        unsigned lane = __builtin_ctz(left);
        uintptr_t last = (r.address[lane] + r.bytes - 1) >> 2;
        for (uintptr_t word = r.address[lane] >> 2; word <= last; ++word) {
            unsigned depth = banks.add(word, word & 31);
            most = depth > most ? depth : most;
        }
    }
    return most;
}

// Whether lanes i and i ^ distance access the same address whenever both are active.
static bool paired(const Request& r, unsigned distance) {
    for (unsigned left = r.lanes; left; left &= left - 1) {
        unsigned lane = __builtin_ctz(left), other = lane ^ distance;
        if (r.lanes >> other & 1 && r.address[lane] != r.address[other]) return false;
    }
    return true;
}

// Compute capability 7.0 and later. With 4 bytes per lane the whole warp is served at once, with 8
// bytes half-warps one after the other, with 16 bytes quarter-warps. Loads merge the two halves, or
// the two quarters of each half, if in the whole warp neighbours (or next but one) load the same.
static void shared_cost(const Request& r, unsigned kind, Cost& cost) {
    unsigned width = r.bytes <= 4 ? 32 : r.bytes <= 8 ? 16 : 8;
    if (width < 32 && kind == LOAD && (paired(r, 1) || paired(r, 2))) width *= 2;
    for (unsigned first = 0; first < 32; first += width) {
        unsigned lanes = r.lanes & (width == 32 ? ~0u : ((1u << width) - 1) << first);
        if (!lanes) continue;
        unsigned needed = passes(r, lanes);
        cost.wavefronts += needed;
        cost.ideal += 1;
        cost.degree = needed > cost.degree ? needed : cost.degree;
    }
}

// The lanes that the fullest bank serves one after the other, also those at one word.
static unsigned lanes_at_a_bank(const Request& r) {
    unsigned lanes[32] = {}, most = 0;
    for (unsigned left = r.lanes; left; left &= left - 1) {
        const uintptr_t address = r.address[__builtin_ctz(left)];
        for (uintptr_t word = address >> 2; word <= (address + r.bytes - 1) >> 2; ++word)
            if (++lanes[word & 31] > most) most = lanes[word & 31];
    }
    return most;
}

// Some of the words of a request.
struct Words {
    uintptr_t words[32];
    unsigned count = 0;

    // The place of the word of an address; `count` if it is not there.
    unsigned find(uintptr_t address) const {
        unsigned i = 0;
        while (i < count && words[i] != address >> 2) ++i;
        return i;
    }
    void add(uintptr_t address) { words[count++] = address >> 2; }
};

// A loop: all lanes that are left load. Then, of each half of the warp if the words have 8 bytes,
// one lane a bank compares and swaps, which fails where the half before has just changed the word.
static unsigned loop_wavefronts(Request r) {
    const unsigned width = r.bytes == 8 ? 16 : 32;
    unsigned total = 0;
    while (r.lanes) {
        Cost load = {};
        shared_cost(r, LOAD, load);
        total += load.wavefronts;
        Words changed;
        unsigned done = 0;
        for (unsigned first = 0; first < 32; first += width) {
            const unsigned half = width == 32 ? ~0u : ((1u << width) - 1) << first;
            unsigned banks = 0, before = changed.count;
            if (r.lanes & half) total += 2;
            for (unsigned left = r.lanes & half; left; left &= left - 1) {
                const unsigned lane = __builtin_ctz(left), bank = r.address[lane] >> 2 & 31;
                if (banks >> bank & 1) continue;
                banks |= 1u << bank;
                if (changed.find(r.address[lane]) < before) continue;
                changed.add(r.address[lane]);
                done |= 1u << lane;
            }
        }
        r.lanes &= ~done;
    }
    return total;
}

// The words are loaded once. All lanes that are left compare and swap; one a word comes through.
static unsigned half_wavefronts(Request r) {
    unsigned total = passes(r, r.lanes);
    while (r.lanes) {
        total += 2 * lanes_at_a_bank(r);
        Words changed;
        for (unsigned left = r.lanes; left; left &= left - 1) {
            const unsigned lane = __builtin_ctz(left);
            if (changed.find(r.address[lane]) < changed.count) continue;
            changed.add(r.address[lane]);
            r.lanes &= ~(1u << lane);
        }
    }
    return total;
}

static unsigned atomic_wavefronts(const Request& r) {
    switch (r.turns) {
        case AT_ONCE:
            return passes(r, r.lanes);
        case SWAP:
            return 2 * lanes_at_a_bank(r);
        case LOOP:
            return loop_wavefronts(r);
        case LOOP_OF_TWO:
            return loop_wavefronts(r) + 1;
        case LOOP_OF_HALF:
            return half_wavefronts(r);
        default:
            return lanes_at_a_bank(r);
    }
}

// An H100 has counted the same for each kind (docs/profile.md). Ideal is what lanes at the same
// words take if these lie one after the other.
static void atomic_cost(const Request& r, Cost& cost) {
    Request packed = r;
    Words words;
    for (unsigned left = r.lanes; left; left &= left - 1) {
        const unsigned lane = __builtin_ctz(left), place = words.find(r.address[lane]);
        if (place == words.count) words.add(r.address[lane]);
        packed.address[lane] = place * (r.bytes == 8 ? 8 : 4) + r.address[lane] % 4;
    }
    cost.wavefronts = atomic_wavefronts(r);
    cost.ideal = atomic_wavefronts(packed);
    cost.degree = passes(r, r.lanes);
}

// Compute capability 1.x, as in the lecture: half-warps on 16 banks. Lanes that read the same
// address share a pass; different bytes of one word do not.
static void shared_cost_16_banks(const Request& r, Cost& cost) {
    for (unsigned first = 0; first < 32; first += 16) {
        unsigned lanes = r.lanes & 0xffffu << first, most = 0;
        if (!lanes) continue;
        Banks banks;
        for (unsigned left = lanes; left; left &= left - 1) {
            uintptr_t address = r.address[__builtin_ctz(left)];
            for (unsigned offset = 0; offset < r.bytes; offset += 4) {
                unsigned depth = banks.add(address + offset, (address + offset) >> 2 & 15);
                most = depth > most ? depth : most;
            }
        }
        cost.wavefronts += most;
        cost.ideal += 1;
        cost.degree = most > cost.degree ? most : cost.degree;
    }
}

// The distinct sectors, and the minimum number for the distinct bytes.
static void global_cost(const Request& r, Cost& cost) {
    uintptr_t sectors[64], starts[32];
    unsigned covered[64];  // bytes of each sector
    unsigned distinct = 0, num_starts = 0;
    for (unsigned left = r.lanes; left; left &= left - 1) {
        const uintptr_t address = r.address[__builtin_ctz(left)], end = address + r.bytes;
        unsigned i = num_starts;
        while (i > 0 && starts[i - 1] != address) --i;
        if (i != 0) continue;
        starts[num_starts++] = address;
        for (uintptr_t from = address; from < end;) {
            const uintptr_t sector = from / SECTOR_BYTES, next = (sector + 1) * SECTOR_BYTES;
            const unsigned bytes = (unsigned)((next < end ? next : end) - from);
            i = distinct;
            while (i > 0 && sectors[i - 1] != sector) --i;
            if (i == 0) sectors[distinct] = sector, covered[distinct] = 0, i = ++distinct;
            covered[i - 1] += bytes;
            from = next;
        }
    }
    for (unsigned i = 0; i < distinct; ++i) {
        unsigned before = i;  // a line's sectors mostly follow one another
        while (before > 0 &&
               sectors[before - 1] / SECTORS_PER_LINE != sectors[i] / SECTORS_PER_LINE)
            --before;
        cost.lines += before == 0;
        cost.partial += covered[i] < SECTOR_BYTES;
    }
    cost.sectors = distinct;
    cost.ideal_sectors = (num_starts * r.bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
}

// Local memory, at the address in each thread's own: the words at one address lie side by side for
// the lanes of a warp. Ideal is what the lanes take if all use the same address.
static void local_cost(const Request& r, Cost& cost) {
    uintptr_t sectors[32 * 5];
    unsigned eights = 0, words = 0;  // lanes / 8 whose words share a sector
    for (unsigned left = r.lanes; left; left &= left - 1) {
        const unsigned lane = __builtin_ctz(left);
        const uintptr_t first = r.address[lane] / 4, last = (r.address[lane] + r.bytes - 1) / 4;
        if (last - first + 1 > words) words = (unsigned)(last - first + 1);
        eights |= 1u << lane / 8;
        for (uintptr_t word = first; word <= last; ++word) {
            const uintptr_t sector = word * 4 + lane / 8;
            unsigned i = cost.sectors;
            while (i > 0 && sectors[i - 1] != sector) --i;
            if (i == 0) sectors[cost.sectors++] = sector;
        }
    }
    cost.ideal_sectors = words * (unsigned)__builtin_popcount(eights);
}

static unsigned most_at_one_address(const Request& r) {
    unsigned most = 0;
    for (unsigned left = r.lanes; left;) {
        uintptr_t address = r.address[__builtin_ctz(left)];
        unsigned same = 0;
        for (unsigned others = left; others; others &= others - 1) {
            unsigned lane = __builtin_ctz(others);
            if (r.address[lane] == address) same |= 1u << lane;
        }
        left &= ~same;
        unsigned count = (unsigned)__builtin_popcount(same);
        most = count > most ? count : most;
    }
    return most;
}

// The cost of one kind of access on one line to one array in a launch. Python reads these structs.
struct AccessRow {
    Place place;
    unsigned region, kind, space, bytes, degree_max, same_max, unused;
    uint64_t requests, lanes, sectors, ideal_sectors, wavefronts, ideal_wavefronts, degree_sum,
        same_sum, lines, partial;
};
struct StepRow {  // consecutive requests with the same cost, of the first block traced
    unsigned row, interval, requests, wavefronts, ideal, sectors;
    unsigned lanes, unused;  // mask of the first request, and its addresses
    uint64_t address[32];
};
struct BranchRow {  // by site
    uint64_t executions, divergent, lanes_first, lanes_second;
};
struct WaysRow {             // an execution of a branch by a warp of the first block traced
    unsigned site, lanes;    // mask of those that executed it
    unsigned successor[32];  // the site where each of them went on
};

struct Counts {
    List<AccessRow> rows;
    List<StepRow> steps;
    List<unsigned> last_step, num_steps;  // of each row
    List<WaysRow> ways;
    Map row_of;
    BranchRow* branches = nullptr;  // by site, as are these:
    uint64_t *barriers = nullptr, *warp_ops = nullptr;
    unsigned* num_ways = nullptr;
    uint64_t floats = 0, doubles = 0;
    unsigned banks = 32;

    void begin(size_t num_sites) {
        rows.clear(), steps.clear(), last_step.clear(), num_steps.clear(), row_of.clear();
        ways.clear();
        free(branches), free(barriers), free(warp_ops), free(num_ways);
        branches = (BranchRow*)calloc(num_sites + 1, sizeof *branches);
        barriers = (uint64_t*)calloc(num_sites + 1, sizeof *barriers);
        warp_ops = (uint64_t*)calloc(num_sites + 1, sizeof *warp_ops);
        num_ways = (unsigned*)calloc(num_sites + 1, sizeof *num_ways);
        if (!branches || !barriers || !warp_ops || !num_ways) abort();
        floats = doubles = 0;
    }

    // `interval` numbers the stretches between block barriers; steps are kept if `with_steps`, with
    // addresses from the region's `low` on.
    void add(Place place, unsigned region, unsigned kind, unsigned space, const Request& r,
             unsigned interval, bool with_steps, const char* low) {
        Cost cost = {};
        if (kind == ATOMIC) cost.same_address = most_at_one_address(r);
        if (space == SHARED && banks == 16)
            shared_cost_16_banks(r, cost);
        else if (space == SHARED && kind == ATOMIC)
            atomic_cost(r, cost);
        else if (space == SHARED)
            shared_cost(r, kind, cost);
        else if (space == LOCAL)
            local_cost(r, cost);
        else
            global_cost(r, cost);

        uint64_t key =
            (uint64_t)place << 32 | (region & 0xffffff) << 8 | (kind << 5 & 0xe0) | (r.bytes & 31);
        unsigned index = row_of.put(key, (unsigned)rows.count);
        if (index == rows.count) {
            rows.add({place, region, kind, space, r.bytes, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
            last_step.add(~0u);
            num_steps.add(0);
        }
        AccessRow& row = rows[index];
        row.requests += 1;
        row.lanes += (unsigned)__builtin_popcount(r.lanes);
        row.sectors += cost.sectors;
        row.ideal_sectors += cost.ideal_sectors;
        row.wavefronts += cost.wavefronts;
        row.ideal_wavefronts += cost.ideal;
        row.degree_sum += cost.degree;
        row.same_sum += cost.same_address;
        row.lines += cost.lines;
        row.partial += cost.partial;
        if (cost.degree > row.degree_max) row.degree_max = cost.degree;
        if (cost.same_address > row.same_max) row.same_max = cost.same_address;
        if (with_steps) add_step(index, interval, cost, r, (uintptr_t)low);
    }

    // The row for the ways that `lanes` take at a branch; ~0u if it has enough of them.
    unsigned add_ways(unsigned site, unsigned lanes) {
        if (num_ways[site] == MAX_WAYS) return ~0u;
        ++num_ways[site];
        ways.add({site, lanes, {}});
        return (unsigned)ways.count - 1;
    }

  private:
    void add_step(unsigned row, unsigned interval, const Cost& cost, const Request& r,
                  uintptr_t low) {
        if (last_step[row] != ~0u) {
            StepRow& last = steps[last_step[row]];
            if (last.interval == interval && last.wavefronts == cost.wavefronts &&
                last.ideal == cost.ideal && last.sectors == cost.sectors) {
                ++last.requests;
                return;
            }
        }
        if (num_steps[row] == MAX_STEPS) return;
        ++num_steps[row];
        last_step[row] = (unsigned)steps.count;
        StepRow step = {row,     interval, 1, cost.wavefronts, cost.ideal, cost.sectors,
                        r.lanes, 0,        {}};
        for (unsigned left = r.lanes; left; left &= left - 1) {
            const unsigned lane = __builtin_ctz(left);
            step.address[lane] = r.address[lane] - low;
        }
        steps.add(step);
    }
};

// The ways taken by the lanes of a warp that executed a branch together.
struct Fork {
    unsigned site;
    unsigned lanes, left;         // masks: that executed it; whose next block is not yet known
    unsigned successor, took_it;  // the first successor seen, and the lanes that went there
    unsigned row;                 // of WaysRow
};

// Follows the basic blocks of every thread, to detect branches that split a warp.
struct Forks {
    struct Open {
        unsigned depth, fork;
    };
    List<Fork> forks;
    List<unsigned> spare;
    List<Open> open[1024];     // of each thread, the innermost call last
    Counts* keeper = nullptr;  // of the ways that lanes take, in the first block traced

    void begin_block(unsigned threads, Counts* with_ways) {
        forks.clear(), spare.clear(), keeper = with_ways;
        for (unsigned t = 0; t < threads; ++t) open[t].clear();
    }

    // `lanes` of the warp whose first thread is `base` enter a block together. If it continues the
    // condition of the block `head`, it is still open which way a lane takes.
    void enter(unsigned base, unsigned lanes, unsigned site, unsigned head, bool branches,
               unsigned depth, BranchRow* rows) {
        unsigned fork = ~0u;
        for (unsigned left = lanes; left; left &= left - 1) {
            unsigned lane = __builtin_ctz(left);
            if (head && goes_on(base + lane, depth, head, rows)) continue;
            leave(base + lane, depth, site, rows);
            if (!branches) continue;
            if (fork == ~0u) fork = new_fork(site, lanes);
            open[base + lane].add({depth, fork});
        }
    }

    // Decides the branches that `thread` left open at `depth` or in deeper calls: it went to
    // `site`.
    void leave(unsigned thread, unsigned depth, unsigned site, BranchRow* rows) {
        List<Open>& mine = open[thread];
        while (mine.count && mine[mine.count - 1].depth >= depth) {
            const Open& last = mine[--mine.count];
            settle(last.fork, thread & 31, last.depth == depth ? site : 0, rows);
        }
    }

  private:
    // Whether the innermost condition of `thread` is the one that began in the block `head`.
    bool goes_on(unsigned thread, unsigned depth, unsigned head, BranchRow* rows) {
        leave(thread, depth + 1, 0, rows);
        const List<Open>& mine = open[thread];
        if (!mine.count) return false;
        const Open& last = mine.items[mine.count - 1];
        return last.depth == depth && forks[last.fork].site == head;
    }
    unsigned new_fork(unsigned site, unsigned lanes) {
        unsigned index;
        if (spare.count)
            index = spare[--spare.count];
        else
            index = (unsigned)forks.count, forks.add({});
        forks[index] = {site, lanes, lanes, ~0u, 0, keeper ? keeper->add_ways(site, lanes) : ~0u};
        return index;
    }
    void settle(unsigned index, unsigned lane, unsigned successor, BranchRow* rows) {
        Fork& fork = forks[index];
        if (fork.left == fork.lanes) fork.successor = successor;
        if (fork.successor == successor) fork.took_it |= 1u << lane;
        if (fork.row != ~0u) keeper->ways[fork.row].successor[lane] = successor;
        fork.left &= ~(1u << lane);
        if (fork.left) return;
        BranchRow& row = rows[fork.site];
        unsigned here = (unsigned)__builtin_popcount(fork.took_it);
        unsigned there = (unsigned)__builtin_popcount(fork.lanes) - here;
        row.executions += 1;
        row.divergent += there > 0;
        if (there > 0) row.lanes_first += here < there ? here : there;
        if (there > 0) row.lanes_second += here < there ? there : here;
        spare.add(index);
    }
};

}  // namespace cudalab

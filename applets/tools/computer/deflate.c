#include "deflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

enum {
    WINDOW = 32768,
    HASH_BITS = 14,
    CHAIN = 12, /* places that are tried */
    MATCH_MIN = 3,
    MATCH_MAX = 258,
    TOKENS = 32768, /* of a block */
    LITERALS = 286,
    DISTANCES = 30,
    LENGTH_CODES = 19,
    BITS_MAX = 15,
    END = 256
};

/* Codes of lengths and distances: their first value, and the bits that follow. */
static const uint16_t length_base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint16_t distance_base[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                         33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                         1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};

static int length_bits(int code)
{
    return code < 8 || code == 28 ? 0 : (code - 4) / 4;
}
static int distance_bits(int code)
{
    return code < 4 ? 0 : (code - 2) / 2;
}

struct packer {
    const unsigned char *data;
    size_t n, at, begun; /* of the block */
    struct buf *out;
    uint32_t bits; /* that are not a whole byte yet */
    int n_bits;
    int32_t head[1 << HASH_BITS];
    uint16_t back[WINDOW];   /* how far before each place the one before it with its hash is; 0: none */
    uint32_t tokens[TOKENS]; /* distance << 16 | length, or a byte */
    size_t n_tokens;
    unsigned counts[LITERALS + DISTANCES];
};

/* ---- bits ---- */

static void put(struct packer *p, uint32_t value, int n)
{
    p->bits |= value << p->n_bits;
    for (p->n_bits += n; p->n_bits >= 8; p->n_bits -= 8) {
        buf_addc(p->out, (char)p->bits);
        p->bits >>= 8;
    }
}

static int code_of(const uint16_t *base, int n, int value)
{
    int low = 0;
    while (n - low > 1) {
        int middle = (low + n) / 2;
        if (base[middle] <= value)
            low = middle;
        else
            n = middle;
    }
    return low;
}

/* ---- Huffman's codes ---- */

struct code {
    uint16_t bits[LITERALS];
    unsigned char length[LITERALS];
};

struct leaf {
    unsigned count;
    int symbol;
};

static int by_count(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? -1 : 1) : x->symbol - y->symbol;
}

/* How many symbols have each length, of a tree over sorted counts: two queues, that of the leaves and that of
 * the nodes, which come in their order by themselves. */
static void tree_lengths(const struct leaf *leaves, int n, int *depth_of_leaf)
{
    unsigned count[LITERALS] = {0};
    int parent[2 * LITERALS] = {0}, depth[LITERALS];
    int leaf = 0, node = 0;
    for (int made = 0; made < n - 1; made++) {
        count[made] = 0;
        for (int i = 0; i < 2; i++) {
            bool takes_leaf = leaf < n && (node >= made || leaves[leaf].count <= count[node]);
            count[made] += takes_leaf ? leaves[leaf].count : count[node];
            parent[takes_leaf ? leaf++ : LITERALS + node++] = made;
        }
    }
    depth[n - 2] = 0;
    for (int i = n - 3; i >= 0; i--)
        depth[i] = depth[parent[LITERALS + i]] + 1;
    for (int i = 0; i < n; i++)
        depth_of_leaf[i] = depth[parent[i]] + 1;
}

/* Makes none longer than `max`: those that are too long become shorter, others longer until all have room,
 * and then, from the most frequent on, shorter as far as there is some: readers refuse what leaves any. */
static void limit_lengths(int *lengths, int n, int max)
{
    long room = 1L << max, taken = 0;
    for (int i = 0; i < n; i++) {
        if (lengths[i] > max)
            lengths[i] = max;
        taken += room >> lengths[i];
    }
    for (int i = 0; taken > room; i = i + 1 < n ? i + 1 : 0)
        if (lengths[i] < max) {
            lengths[i]++;
            taken -= room >> lengths[i];
        }
    for (int i = n - 1; taken<room; i = i> 0 ? i - 1 : n - 1)
        if (room >> lengths[i] <= room - taken) {
            taken += room >> lengths[i];
            lengths[i]--;
        }
}

static void assign(struct code *c, int n)
{
    unsigned next[BITS_MAX + 2] = {0};
    for (int i = 0; i < n; i++)
        next[c->length[i] + 1] += c->length[i] > 0;
    for (int i = 1; i <= BITS_MAX; i++)
        next[i] = (next[i - 1] + next[i]) << 1;
    for (int i = 0; i < n; i++) {
        unsigned code = c->length[i] ? next[c->length[i]]++ : 0, turned = 0;
        for (int bit = 0; bit < c->length[i]; bit++)
            turned |= (code >> bit & 1) << (c->length[i] - 1 - bit);
        c->bits[i] = (uint16_t)turned;
    }
}

static void make_code(struct code *c, const unsigned *counts, int n, int max)
{
    struct leaf leaves[LITERALS];
    int lengths[LITERALS], n_leaves = 0;
    memset(c, 0, sizeof *c);
    for (int i = 0; i < n; i++)
        if (counts[i])
            leaves[n_leaves++] = (struct leaf){counts[i], i};
    for (int i = 0; n_leaves < 2; i++) /* a code of one symbol isn't whole, which some readers refuse */
        if (!counts[i])
            leaves[n_leaves++] = (struct leaf){0, i};
    qsort(leaves, (size_t)n_leaves, sizeof *leaves, by_count);
    tree_lengths(leaves, n_leaves, lengths);
    limit_lengths(lengths, n_leaves, max);
    for (int i = 0; i < n_leaves; i++)
        c->length[leaves[i].symbol] = (unsigned char)lengths[i];
    assign(c, n);
}

/* ---- a block ---- */

/* The lengths of both codes, with runs of zeros and of equal ones: symbols, with what follows them above. */
static int put_lengths(uint16_t *into, const unsigned char *lengths, int n)
{
    int made = 0;
    for (int at = 0, run; at < n; at += run) {
        int most = lengths[at] ? 7 : 138;
        for (run = 1; at + run < n && run < most && lengths[at + run] == lengths[at]; run++)
            ;
        if (lengths[at] == 0 && run >= 3) {
            into[made++] = (uint16_t)(run <= 10 ? 17 | (run - 3) << 8 : 18 | (run - 11) << 8);
        } else if (run >= 4) {
            into[made++] = lengths[at];
            into[made++] = (uint16_t)(16 | (run - 4) << 8);
        } else {
            run = 1;
            into[made++] = lengths[at];
        }
    }
    return made;
}

static void put_codes(struct packer *p, const struct code *literals, const struct code *distances)
{
    static const unsigned char order[LENGTH_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    static const unsigned char more[] = {2, 3, 7};
    unsigned char all[LITERALS + DISTANCES];
    uint16_t symbols[LITERALS + DISTANCES];
    unsigned counts[LENGTH_CODES] = {0};
    struct code code;
    memcpy(all, literals->length, LITERALS);
    memcpy(all + LITERALS, distances->length, DISTANCES);
    int n = put_lengths(symbols, all, LITERALS + DISTANCES);
    for (int i = 0; i < n; i++)
        counts[symbols[i] & 0xff]++;
    make_code(&code, counts, LENGTH_CODES, 7);
    put(p, LITERALS - 257, 5);
    put(p, DISTANCES - 1, 5);
    put(p, LENGTH_CODES - 4, 4);
    for (int i = 0; i < LENGTH_CODES; i++)
        put(p, code.length[order[i]], 3);
    for (int i = 0; i < n; i++) {
        int symbol = symbols[i] & 0xff;
        put(p, code.bits[symbol], code.length[symbol]);
        if (symbol >= 16)
            put(p, symbols[i] >> 8, more[symbol - 16]);
    }
}

static void put_block(struct packer *p, bool last)
{
    struct code literals, distances;
    p->counts[END] = 1;
    make_code(&literals, p->counts, LITERALS, BITS_MAX);
    make_code(&distances, p->counts + LITERALS, DISTANCES, BITS_MAX);
    put(p, last, 1);
    put(p, 2, 2);
    put_codes(p, &literals, &distances);
    for (size_t i = 0; i < p->n_tokens; i++) {
        int value = p->tokens[i] & 0xffff, distance = (int)(p->tokens[i] >> 16);
        int code = distance ? END + 1 + code_of(length_base, 29, value) : value;
        put(p, literals.bits[code], literals.length[code]);
        if (!distance)
            continue;
        put(p, (uint32_t)(value - length_base[code - END - 1]), length_bits(code - END - 1));
        code = code_of(distance_base, DISTANCES, distance);
        put(p, distances.bits[code], distances.length[code]);
        put(p, (uint32_t)(distance - distance_base[code]), distance_bits(code));
    }
    put(p, literals.bits[END], literals.length[END]);
    p->n_tokens = 0;
    memset(p->counts, 0, sizeof p->counts);
}

/* ---- what is repeated ---- */

static unsigned hash_at(const unsigned char *s)
{
    return ((s[0] | (unsigned)s[1] << 8 | (unsigned)s[2] << 16) * 0x9E3779B1u) >> (32 - HASH_BITS);
}

static void remember(struct packer *p, size_t at)
{
    if (p->n - at < MATCH_MIN)
        return;
    int32_t *head = &p->head[hash_at(p->data + at)];
    size_t distance = *head >= 0 ? at - (size_t)*head : 0;
    p->back[at % WINDOW] = distance < WINDOW ? (uint16_t)distance : 0;
    *head = (int32_t)at;
}

static int match_length(const struct packer *p, size_t at, size_t before)
{
    size_t most = p->n - at < MATCH_MAX ? p->n - at : MATCH_MAX, n = 0;
    while (n < most && p->data[at + n] == p->data[before + n])
        n++;
    return (int)n;
}

/* The longest that there has been: behind remember(at). */
static int find(const struct packer *p, size_t at, size_t *distance)
{
    int best = 0;
    size_t before = at;
    for (int tries = 0; tries < CHAIN && p->back[before % WINDOW] && p->n - at >= MATCH_MIN; tries++) {
        before -= p->back[before % WINDOW];
        if (at - before >= WINDOW)
            break;
        if (best > 0 && p->data[before + (size_t)best] != p->data[at + (size_t)best])
            continue;
        int n = match_length(p, at, before);
        if (n > best) {
            best = n;
            *distance = at - before;
        }
        if (best == MATCH_MAX || at + (size_t)best >= p->n)
            break;
    }
    return best >= MATCH_MIN ? best : 0;
}

void deflate(struct buf *out, const unsigned char *data, size_t n)
{
    struct packer *p = mem_zalloc(sizeof *p);
    p->data = data;
    p->n = n;
    p->out = out;
    memset(p->head, 0xff, sizeof p->head);
    for (size_t at = 0; at < n;) {
        size_t distance = 0;
        remember(p, at);
        int length = find(p, at, &distance);
        p->tokens[p->n_tokens++] = length ? (uint32_t)(distance << 16) | (uint32_t)length : data[at];
        if (length) {
            p->counts[END + 1 + code_of(length_base, 29, length)]++;
            p->counts[LITERALS + code_of(distance_base, DISTANCES, (int)distance)]++;
        } else {
            p->counts[data[at]]++;
        }
        for (int i = 1; i < length; i++)
            remember(p, at + (size_t)i);
        at += length ? (size_t)length : 1;
        if (p->n_tokens == TOKENS)
            put_block(p, false);
    }
    put_block(p, true);
    put(p, 0, 7); /* up to a whole byte */
    free(p);
}

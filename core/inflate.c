#include "inflate.h"

#include <stdint.h>
#include <string.h>

#define CODE_MAX 15 /* bits of a code */
#define SHORT_MAX 9 /* of one that is looked up at once */
#define SYMBOLS 288
#define LONGEST 258 /* bytes of a repetition */

struct code {
    uint16_t at_once[1 << SHORT_MAX]; /* for whatever bits come: symbol and length of its code; 0: none */
    uint16_t numbers[CODE_MAX + 1];   /* how many codes there are of each length */
    uint16_t symbols[SYMBOLS];        /* in the order of their codes */
};

struct unpacking {
    const unsigned char *at, *end;
    uint64_t bits;
    int n_bits;
    struct buf *out;
    size_t begin; /* of our own bytes in it */
    struct code lit, dist;
};

/* ---- bits ---- */

static void refill(struct unpacking *u)
{
    while (u->n_bits <= 56 && u->at < u->end) {
        u->bits |= (uint64_t)*u->at++ << u->n_bits;
        u->n_bits += 8;
    }
}

/* -1: they have ended. */
static int take(struct unpacking *u, int n)
{
    refill(u);
    if (u->n_bits < n)
        return -1;
    int value = (int)(u->bits & ((1U << n) - 1));
    u->bits >>= n;
    u->n_bits -= n;
    return value;
}

/* Bit by bit: codes of one length follow each other, and begin at twice the end of the shorter ones. */
static int find_symbol(const struct code *c, unsigned bits, int *length)
{
    unsigned code = 0, first = 0, at = 0;
    for (*length = 1; *length <= CODE_MAX; ++*length, bits >>= 1) {
        unsigned n = c->numbers[*length];
        code |= bits & 1;
        if (code < first + n)
            return c->symbols[at + code - first];
        at += n;
        first = (first + n) << 1;
        code <<= 1;
    }
    return -1;
}

static int take_symbol(struct unpacking *u, const struct code *c)
{
    refill(u);
    unsigned entry = c->at_once[u->bits & ((1U << SHORT_MAX) - 1)];
    int length = (int)(entry & 15), symbol = (int)(entry >> 4);
    if (length == 0)
        symbol = find_symbol(c, (unsigned)u->bits, &length);
    if (symbol < 0 || length > u->n_bits)
        return -1;
    u->bits >>= length;
    u->n_bits -= length;
    return symbol;
}

/* ---- codes ---- */

static void set_at_once(struct code *c, unsigned code, unsigned length, unsigned symbol)
{
    unsigned reversed = 0;
    for (unsigned i = 0; i < length; i++)
        reversed |= (code >> (length - 1 - i) & 1) << i;
    for (unsigned at = reversed; at < 1U << SHORT_MAX; at += 1U << length)
        c->at_once[at] = (uint16_t)(symbol << 4 | length);
}

/* Makes the codes with these lengths. False: there are more than fit. */
static bool make_code(struct code *c, const unsigned char *lengths, int n)
{
    unsigned next = 0, at = 0;
    memset(c, 0, sizeof *c);
    for (unsigned length = 1; length <= CODE_MAX; length++, next <<= 1)
        for (int symbol = 0; symbol < n; symbol++) {
            if (lengths[symbol] != length)
                continue;
            if (next >> length != 0)
                return false;
            if (length <= SHORT_MAX)
                set_at_once(c, next, length, (unsigned)symbol);
            c->symbols[at++] = (uint16_t)symbol;
            c->numbers[length]++;
            next++;
        }
    return true;
}

static bool fixed_codes(struct unpacking *u)
{
    unsigned char lengths[SYMBOLS];
    for (int i = 0; i < SYMBOLS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    bool made = make_code(&u->lit, lengths, SYMBOLS);
    memset(lengths, 5, 30);
    return made && make_code(&u->dist, lengths, 30);
}

/* Lengths of codes, themselves coded by u->lit: a length, or how often the one before or none is repeated. */
static bool take_lengths(struct unpacking *u, unsigned char *lengths, int n)
{
    for (int i = 0; i < n;) {
        int symbol = take_symbol(u, &u->lit), times = 1;
        unsigned char length = (unsigned char)(symbol < 16 ? symbol : 0);
        if (symbol < 0 || (symbol == 16 && i == 0))
            return false;
        if (symbol == 16)
            length = lengths[i - 1];
        if (symbol >= 16) {
            int more = take(u, symbol == 16 ? 2 : symbol == 17 ? 3 : 7);
            times = more < 0 ? n : more + (symbol == 18 ? 11 : 3);
        }
        if (times > n - i)
            return false;
        memset(lengths + i, length, (size_t)times);
        i += times;
    }
    return true;
}

static bool own_codes(struct unpacking *u)
{
    static const unsigned char order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned char lengths[SYMBOLS + 32] = {0};
    int lits = take(u, 5) + 257, dists = take(u, 5) + 1, coded = take(u, 4) + 4;
    if (lits < 257 || lits > SYMBOLS - 2 || dists < 1 || dists > 30 || coded < 4)
        return false;
    for (int i = 0; i < coded; i++) {
        int length = take(u, 3);
        if (length < 0)
            return false;
        lengths[order[i]] = (unsigned char)length;
    }
    if (!make_code(&u->lit, lengths, 19) || !take_lengths(u, lengths, lits + dists))
        return false;
    return lengths[256] != 0 && make_code(&u->dist, lengths + lits, dists) &&
           make_code(&u->lit, lengths, lits);
}

/* ---- blocks ---- */

static int stored_block(struct unpacking *u)
{
    take(u, u->n_bits & 7);
    int n = take(u, 16), inverse = take(u, 16);
    if (n < 0 || inverse < 0 || (n ^ inverse) != 0xffff)
        return INFLATE_BROKEN;
    u->at -= u->n_bits / 8; /* what was taken ahead */
    u->bits = 0;
    u->n_bits = 0;
    if (u->end - u->at < n)
        return INFLATE_BROKEN;
    if (buf_add(u->out, u->at, (size_t)n) < 0)
        return INFLATE_TOO_MUCH;
    u->at += n;
    return 0;
}

/* Where the values of a symbol begin that has `extra` more bits; four (or two) symbols share a number of
 * them. */
static int value_of(struct unpacking *u, int extra, int base)
{
    int more = extra > 0 ? take(u, extra) : 0;
    return more < 0 ? -1 : base + more;
}

/* Mostly without a call. */
static bool has_room(struct buf *out, size_t n)
{
    return (n < out->cap - out->len && n <= out->max - out->len) || buf_reserve(out, n) == 0;
}

static int repeat(struct unpacking *u, int symbol)
{
    int s = symbol - 257, extra = s < 8 || s == 28 ? 0 : s / 4 - 1;
    int length = value_of(u, extra, s == 28 ? LONGEST : s < 8 ? s + 3 : ((4 + s % 4) << extra) + 3);
    int d = take_symbol(u, &u->dist);
    if (s > 28 || length < 0 || d < 0)
        return INFLATE_BROKEN;
    extra = d < 4 ? 0 : d / 2 - 1;
    int back = value_of(u, extra, d < 4 ? d + 1 : ((2 + d % 2) << extra) + 1);
    if (back < 0 || (size_t)back > u->out->len - u->begin)
        return INFLATE_BROKEN;
    if (!has_room(u->out, (size_t)length))
        return INFLATE_TOO_MUCH;
    char *to = u->out->data + u->out->len;
    for (int i = 0; i < length; i++)
        to[i] = to[i - back];
    u->out->len += (size_t)length;
    return 0;
}

static int coded_block(struct unpacking *u)
{
    for (;;) {
        int symbol = take_symbol(u, &u->lit), status = 0;
        if (symbol == 256)
            break;
        if (symbol < 0)
            return INFLATE_BROKEN;
        if (symbol > 256)
            status = repeat(u, symbol);
        else if (has_room(u->out, 1))
            u->out->data[u->out->len++] = (char)symbol;
        else
            status = INFLATE_TOO_MUCH;
        if (status != 0)
            return status;
    }
    return buf_add(u->out, "", 0); /* what a buffer ends with */
}

static int unpack(struct unpacking *u)
{
    for (int last = 0, status; !last;) {
        last = take(u, 1);
        int kind = take(u, 2);
        if (last < 0 || kind < 0 || kind == 3)
            return INFLATE_BROKEN;
        if (kind > 0 && !(kind == 1 ? fixed_codes(u) : own_codes(u)))
            return INFLATE_BROKEN;
        status = kind == 0 ? stored_block(u) : coded_block(u);
        if (status != 0)
            return status;
    }
    return 0;
}

/* ---- what is around it ---- */

/* Behind the head of gzip; NULL: it is none. */
static const unsigned char *behind_gzip(const unsigned char *s, const unsigned char *end)
{
    if (end - s < 18 || s[0] != 0x1f || s[1] != 0x8b || s[2] != 8)
        return NULL;
    unsigned flags = s[3];
    s += 10;
    if (flags & 4) {
        size_t extra = (size_t)s[0] | (size_t)s[1] << 8;
        if ((size_t)(end - s) < extra + 2)
            return NULL;
        s += extra + 2;
    }
    for (unsigned text = 8; text <= 16; text *= 2) /* a name, a comment */
        if (flags & text) {
            s = memchr(s, 0, (size_t)(end - s));
            if (!s)
                return NULL;
            s++;
        }
    s += flags & 2 ? 2 : 0;
    return s <= end ? s : NULL;
}

int inflate(const char *data, size_t n, bool gzip, struct buf *out)
{
    const unsigned char *s = (const unsigned char *)data, *end = s + n;
    if (gzip)
        s = behind_gzip(s, end);
    else if (n >= 2 && (s[0] & 15) == 8 && (s[0] << 8 | s[1]) % 31 == 0)
        s += 2;
    if (!s)
        return INFLATE_BROKEN;
    struct unpacking u = {.at = s, .end = end, .out = out, .begin = out->len};
    int status = unpack(&u);
    if (status == 0 && gzip) {
        const unsigned char *length = u.at - u.n_bits / 8 + 4;
        if (end - length < 4 || ((uint32_t)length[0] | (uint32_t)length[1] << 8 | (uint32_t)length[2] << 16 |
                                 (uint32_t)length[3] << 24) != (uint32_t)(out->len - u.begin))
            return INFLATE_BROKEN;
    }
    return status;
}

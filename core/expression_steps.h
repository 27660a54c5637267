/* What an expression is made into (expression.c), and how it is run (expression_find.c). */
#ifndef CORE_EXPRESSION_STEPS_H
#define CORE_EXPRESSION_STEPS_H

#include "buf.h"
#include "expression.h"

enum expression_op {
    OP_SET,  /* one character of the n_ranges ranges from `range` on; with `negate` one of none of them */
    OP_FORK, /* goes on at both, which are counted from this step on */
    OP_JUMP, /* goes on at the first */
    OP_BEGIN,
    OP_END,
    OP_WORD_BEGIN,
    OP_WORD_END,
    OP_WORD_EDGE,
    OP_NO_WORD_EDGE,
    OP_FOUND,
};

struct expression_step {
    unsigned char op;
    bool negate;
    union {
        struct {
            int first, second;
        } to;
        struct {
            unsigned range, n_ranges;
        } set;
    };
};

struct expression_range {
    unsigned first, last; /* code points */
};

enum { CODE_POINT_MAX = 0x10FFFF, NO_CHARACTER = CODE_POINT_MAX + 1 /* and up: bytes that are no UTF-8 */ };

struct expression_thread {
    unsigned step;
    size_t start; /* where in the line it has begun */
};

struct expression {
    struct buf steps, ranges;
    /* Room for a search, in the number of the steps: those that wait for a character, those that it has led
     * to, those yet to be looked at, and at which position each was seen. */
    struct expression_thread *waiting, *reached;
    unsigned *stack, *seen, position;
    unsigned char begins[256]; /* bytes that a match can begin with */
    bool empty;                /* it may match no character at all */
    size_t match_end;
};

static inline const struct expression_step *expression_steps(const struct expression *e)
{
    return (const struct expression_step *)(const void *)e->steps.data;
}

static inline size_t expression_count(const struct expression *e)
{
    return e->steps.len / sizeof(struct expression_step);
}

/* The character at *s, where there are n bytes, n > 0; *s goes behind it. */
unsigned expression_character(const char **s, size_t n);

/* Gets the room for searches, once the steps are there. */
void expression_prepare(struct expression *e);

#endif

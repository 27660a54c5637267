/* Numbers with a point: their decimal digits, and back. Exact in both directions, in a tenth of what the C
 * library takes for it. */
#ifndef CORE_STATIC_DECIMAL_H
#define CORE_STATIC_DECIMAL_H

/* 0.DIGITS times ten to the power of point; without zeros at either end. */
struct decimal {
    char digits[800];
    int n, point;
};

/* value: finite, its sign doesn't count. */
void decimal_of(double value, struct decimal *d);

/* Leaves that many digits, or none below zero; half goes to the even one. */
void decimal_round(struct decimal *d, int digits);

/* The nearest number; below 2e-308 it may be the one next to it. */
double decimal_value(const struct decimal *d);

#endif

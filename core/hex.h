/* Hexadecimal digits of what others wrote: of either case. */
#ifndef CORE_HEX_H
#define CORE_HEX_H

/* The value of a digit; -1 for anything else. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif

#ifndef APPLETS_CONFINE_COMMAND_H
#define APPLETS_CONFINE_COMMAND_H

/* Packed code (core/code_parts.def): behind code_unpack(CODE_confine). */
int confine_command(int argc, char **argv);
int policy_check(int argc, char **argv);

#endif

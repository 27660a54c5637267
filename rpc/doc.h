/* Texts for `toolbox methods`, which isn't in the program that goes in. */
#ifndef RPC_DOC_H
#define RPC_DOC_H

#ifdef TOOLBOX_GUEST
#define DOC(text) NULL
#else
#define DOC(text) (text)
#endif

#endif

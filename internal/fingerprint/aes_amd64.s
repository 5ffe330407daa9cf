//go:build amd64 && !purego

#include "go_asm.h"
#include "textflag.h"

// X0 to X3 are the lanes of the text, X12 that of its length, X8 to X11 the keys
// of the rounds.

#define ROUNDS(LANE) \
	AESENC X8, LANE; \
	AESENC X9, LANE; \
	AESENC X10, LANE; \
	AESENC X11, LANE

#define ROUND2(K) \
	AESENC K, X0; \
	AESENC K, X1

#define ROUND4(K) \
	AESENC K, X0; \
	AESENC K, X1; \
	AESENC K, X2; \
	AESENC K, X3

#define LANES4(A, B, C, D) \
	MOVOU A, X4; \
	MOVOU B, X5; \
	MOVOU C, X6; \
	MOVOU D, X7; \
	PXOR  X4, X0; \
	PXOR  X5, X1; \
	PXOR  X6, X2; \
	PXOR  X7, X3; \
	ROUND4(X8); \
	ROUND4(X9); \
	ROUND4(X10); \
	ROUND4(X11)

// FINGERPRINT leaves in X0 that of the CX bytes at BX under the keys at AX. It
// is a macro, not a function, since functions that call have a frame.
#define FINGERPRINT \
	MOVOU (AX), X0; \
	MOVOU 64(AX), X8; \
	MOVOU 80(AX), X9; \
	MOVOU 96(AX), X10; \
	MOVOU 112(AX), X11; \
	MOVOU 128(AX), X12; \
	MOVQ  CX, X4; \
	PXOR  X4, X12; \
	ROUNDS(X12); \
	CMPQ  CX, $16; \
	JBE   to16; \
	MOVOU 16(AX), X1; \
	CMPQ  CX, $32; \
	JBE   to32; \
	MOVOU 32(AX), X2; \
	MOVOU 48(AX), X3; \
	CMPQ  CX, $64; \
	JBE   to64; \
more: \
	LANES4((BX), 16(BX), 32(BX), 48(BX)); \
	ADDQ $64, BX; \
	SUBQ $64, CX; \
	CMPQ CX, $64; \
	JA   more; \
	LANES4(-64(BX)(CX*1), -48(BX)(CX*1), -32(BX)(CX*1), -16(BX)(CX*1)); \
	JMP  add4; \
to64: \
	LANES4((BX), 16(BX), -32(BX)(CX*1), -16(BX)(CX*1)); \
add4: \
	PXOR X3, X2; \
	PXOR X2, X0; \
	PXOR X1, X0; \
	JMP  done; \
to32: \
	MOVOU (BX), X4; \
	MOVOU -16(BX)(CX*1), X5; \
	PXOR  X4, X0; \
	PXOR  X5, X1; \
	ROUND2(X8); \
	ROUND2(X9); \
	ROUND2(X10); \
	ROUND2(X11); \
	PXOR  X1, X0; \
	JMP   done; \
to16: \
	CMPQ       CX, $8; \
	JB         to7; \
	MOVQ       (BX), X4; \
	MOVQ       -8(BX)(CX*1), X5; \
	PUNPCKLQDQ X5, X4; \
	JMP        one; \
to7: \
	CMPQ CX, $4; \
	JB   to3; \
	MOVL (BX), DX; \
	MOVL -4(BX)(CX*1), SI; \
	SHLQ $32, SI; \
	ORQ  SI, DX; \
	MOVQ DX, X4; \
	JMP  one; \
to3: \
	XORL    DX, DX; \
	TESTQ   CX, CX; \
	JZ      none; \
	MOVBLZX -1(BX)(CX*1), DX; \
	SHLL    $8, DX; \
	MOVQ    CX, SI; \
	SHRQ    $1, SI; \
	MOVB    (BX)(SI*1), DX; \
	SHLL    $8, DX; \
	MOVB    (BX), DX; \
none: \
	MOVQ DX, X4; \
one: \
	PXOR X4, X0; \
	ROUNDS(X0); \
done: \
	PXOR X12, X0

// func aes(keys *[9][16]byte, text string) (lo, hi uint64)
TEXT ·aes(SB), NOSPLIT, $0-40
	MOVQ   keys+0(FP), AX
	MOVQ   text_base+8(FP), BX
	MOVQ   text_len+16(FP), CX
	FINGERPRINT
	MOVQ   X0, lo+24(FP)
	PEXTRQ $1, X0, hi+32(FP)
	RET

// X1 is the tag in all bytes, R8 and R9 the halves of the key, BX the number of
// the group, X3 its tags, R13 those of its entries that have the tag.

// func find(m *Map, keys *Keys, salt *Salt, text string) (value int64)
TEXT ·find(SB), NOSPLIT, $0-48
	MOVQ   keys+8(FP), AX
	CMPB   Keys_fast(AX), $0
	JEQ    portable
	MOVQ   text_base+24(FP), BX
	MOVQ   text_len+32(FP), CX
	FINGERPRINT
	MOVQ   salt+16(FP), DX
	MOVOU  (DX), X1
	PXOR   X1, X0
	MOVQ   X0, R8
	PEXTRQ $1, X0, R9
	MOVL   R9, CX
	SHRL   $25, CX
	ORL    $0x80, CX
	MOVL   CX, X1
	PXOR   X2, X2
	PSHUFB X2, X1
	MOVQ   m+0(FP), SI
	MOVQ   Map_tags(SI), R11
	MOVQ   (Map_tags+8)(SI), DI
	DECQ   DI
	MOVQ   Map_entries(SI), R12
	MOVQ   R8, BX

group:
	ANDQ     DI, BX
	MOVQ     (R11)(BX*8), X3
	MOVO     X1, X4
	PCMPEQB  X3, X4
	PMOVMSKB X4, R13
	TESTL    R13, R13
	JZ       absent

candidate:
	BSFL R13, AX
	LEAQ (AX)(BX*8), AX
	SHLQ $4, AX
	CMPQ R8, entry_low(R12)(AX*1)
	JNE  other
	CMPL R9, entry_high(R12)(AX*1)
	JNE  other
	MOVL entry_value(R12)(AX*1), AX
	MOVQ AX, value+40(FP)
	RET

other:
	LEAL -1(R13), CX
	ANDL CX, R13
	JNZ  candidate

absent:
	INCQ     BX
	PMOVMSKB X3, CX
	CMPL     CX, $0xff
	JEQ      group
	MOVQ     $-1, value+40(FP)
	RET

portable:
	JMP ·findPortable(SB)

//go:build amd64 && !purego

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

// func aes(keys *[9][16]byte, text string) (lo, hi uint64)
TEXT ·aes(SB), NOSPLIT, $0-40
	MOVQ  keys+0(FP), AX
	MOVQ  text_base+8(FP), BX
	MOVQ  text_len+16(FP), CX
	MOVOU (AX), X0
	MOVOU 64(AX), X8
	MOVOU 80(AX), X9
	MOVOU 96(AX), X10
	MOVOU 112(AX), X11
	MOVOU 128(AX), X12
	MOVQ  CX, X4
	PXOR  X4, X12
	ROUNDS(X12)
	CMPQ  CX, $16
	JBE   to16
	MOVOU 16(AX), X1
	CMPQ  CX, $32
	JBE   to32
	MOVOU 32(AX), X2
	MOVOU 48(AX), X3
	CMPQ  CX, $64
	JBE   to64

more:
	LANES4((BX), 16(BX), 32(BX), 48(BX))
	ADDQ $64, BX
	SUBQ $64, CX
	CMPQ CX, $64
	JA   more
	LANES4(-64(BX)(CX*1), -48(BX)(CX*1), -32(BX)(CX*1), -16(BX)(CX*1))
	JMP  add4

to64:
	LANES4((BX), 16(BX), -32(BX)(CX*1), -16(BX)(CX*1))

add4:
	PXOR X3, X2
	PXOR X2, X0
	PXOR X1, X0
	JMP  done

to32:
	MOVOU (BX), X4
	MOVOU -16(BX)(CX*1), X5
	PXOR  X4, X0
	PXOR  X5, X1
	ROUND2(X8)
	ROUND2(X9)
	ROUND2(X10)
	ROUND2(X11)
	PXOR  X1, X0
	JMP   done

to16:
	CMPQ       CX, $8
	JB         to7
	MOVQ       (BX), X4
	MOVQ       -8(BX)(CX*1), X5
	PUNPCKLQDQ X5, X4
	JMP        one

to7:
	CMPQ CX, $4
	JB   to3
	MOVL (BX), DX
	MOVL -4(BX)(CX*1), SI
	SHLQ $32, SI
	ORQ  SI, DX
	MOVQ DX, X4
	JMP  one

to3:
	XORL    DX, DX
	TESTQ   CX, CX
	JZ      none
	MOVBLZX -1(BX)(CX*1), DX
	SHLL    $8, DX
	MOVQ    CX, SI
	SHRQ    $1, SI
	MOVB    (BX)(SI*1), DX
	SHLL    $8, DX
	MOVB    (BX), DX

none:
	MOVQ DX, X4

one:
	PXOR X4, X0
	ROUNDS(X0)

done:
	PXOR   X12, X0
	MOVQ   X0, lo+24(FP)
	PEXTRQ $1, X0, hi+32(FP)
	RET

//go:build amd64 && !purego

#include "textflag.h"

// func Lines(b *Batch, n int)
TEXT ·Lines(SB), NOSPLIT, $0-16
	MOVQ b+0(FP), AX
	MOVQ n+8(FP), CX
	CMPQ CX, $64
	JLE  small
	MOVQ $64, CX
small:
	LEAQ (AX)(CX*8), CX
loop:
	CMPQ AX, CX
	JGE  done
	MOVQ (AX), DX
	PREFETCHT0 (DX)
	ADDQ $8, AX
	JMP  loop
done:
	RET

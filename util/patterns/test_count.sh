#!/bin/bash
# test_count.sh -- the patterns send the messages counted in MPI5000's table 2 over the long distance (Glueck, Mignot, ISPA 2011):
# class B on 16 processes, half of them in each of two sites.
#
# An expected line is kernel, iterations run by NPB, least and largest bytes of a message, total number of such messages. Of IS's
# small messages any number is right: the messages of an alltoall of 4 bytes depend on the MPI library.
set -u
patterns=util/patterns/patterns
[ -x $patterns ] || { echo "skip no $patterns: this build has no Open MPI component"; exit 77; }
"$patterns" count | awk '
    NR == FNR { if (NF == 5) { kernel[++n] = $1; iterations[n] = $2; least[n] = $3; most[n] = $4; wanted[n] = $5 } next }
    {
        seen[$1] = 1
        for (i = 1; i <= n; i++) if (kernel[i] == $1 && least[i] <= $2 && $2 <= most[i]) { sum[i] += $4; counted[FNR] = 1 }
        if (!counted[FNR]) { print "FAIL " $1 ": messages of " $2 " bytes are none of the paper'"'"'s"; bad++ }
    }
    END {
        for (i = 1; i <= n; i++) {
            total = sum[i] * iterations[i]
            fits = wanted[i] == 0 || total > wanted[i] * 0.97 && total < wanted[i] * 1.03
            printf "%s %s: %d of %d to %d bytes, the paper has %s\n", fits ? "ok  " : "FAIL", kernel[i], total, least[i], most[i],
                wanted[i] ? wanted[i] : "others"
            if (!fits) bad++
        }
        exit bad != 0
    }' <(cat <<'TABLE2'
BT 201  25000  27500   9648
BT 201 150000 164000  16112
CG  76 140000 155000  15800
FT  22 2000000 2200000 2816
IS  11      1    400      0
IS  11 500000 600000   1400
LU 251   1000   1100 200000
LU 251 195000 215000   2000
MG  21     40 138500   8842
SP 401  45000  55300  19248
SP 401 100000 163840  32112
TABLE2
) -

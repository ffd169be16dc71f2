. ./total.sh
check() {
    got=$(total $1 $2 $3)
    if [ "$got" = "$4" ]; then
        echo "ok    total $1 $2 $3 = $got"
    else
        echo "FAIL  total $1 $2 $3 = $got, expected $4"; failed=1
    fi
}
check 1000 1 0 1000
check 1000 3 100 2900
check 250 4 50 950
exit ${failed:-0}

# total PRICE QUANTITY DISCOUNT: what an order costs, in cents.
total() {
    echo $(( ($1 - $3) * $2 ))
}

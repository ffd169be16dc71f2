# total PRICE QUANTITY DISCOUNT: the price of an order, in cents.
total() {
    echo $(( ($1 - $3) * $2 ))
}

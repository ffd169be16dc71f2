@rem total PRICE QUANTITY DISCOUNT: what an order costs, in cents.
@set /a got=(%1 - %3) * %2

@rem total PRICE QUANTITY DISCOUNT: the price of an order, in cents.
@set /a got=(%1 - %3) * %2

"""What commands share that speak to a broker or to the nodes of a federation."""

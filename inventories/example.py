from fabrictool.spec.inventory import hosts

nodes = hosts(__file__)

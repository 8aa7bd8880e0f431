/** Unique values: while anything has one, with claims or without, nothing else gets it. */
export interface Use {
  /** Public addresses are of the kind `address`, those in private networks of the kind `network`. */
  readonly kind: 'hostname' | 'mac' | 'address' | 'network'
  /** Where the value is unique; empty for everywhere, or the network of an address in a private network. */
  readonly scope: string
  readonly value: string
}

export interface HeldUse extends Use {
  readonly accountId: string
  /** Of the object that uses it. */
  readonly uid: string
  /** Its name in claims: `server/<id>` and the like. */
  readonly holder: string
}

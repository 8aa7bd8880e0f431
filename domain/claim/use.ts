/** What is unique: whoever has it, with claims or without, nobody else gets it. */
export interface Use {
  /** Public addresses are of the kind `address`, those in private networks of the kind `network`. */
  readonly kind: 'hostname' | 'mac' | 'address' | 'network'
  /** Where the value is unique; empty for everywhere, and the network of an address in one. */
  readonly scope: string
  readonly value: string
}

export interface HeldUse extends Use {
  readonly accountId: string
  /** As claims name it: `server/<id>` and the like. */
  readonly holder: string
}

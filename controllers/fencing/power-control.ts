/** What fencing asks of the management controller of a host (BMC). The ways to one are `redfish.ts` and `ipmi.ts`; when
 *  power is cut and what that proves is the rules' business (`controllers/nouns/node/fence.ts`). */

/** `on` whenever the controller does not clearly say off: also while power goes on or off. */
export type PowerState = 'on' | 'off'

export interface PowerControl {
  /** Throws PowerControlFailed when the controller does not answer, or not in a way that proves anything. */
  powerState(): Promise<PowerState>
  /** Resolves when the controller has accepted to cut the power at once; a host without power is no error. Throws
   *  PowerControlFailed. */
  powerOff(): Promise<void>
}

/** The message is for operators and holds no secret. */
export class PowerControlFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PowerControlFailed'
  }
}

/** How to reach a controller, and how to know that it is the right one. */
export interface Login {
  readonly username: string
  readonly password: string
  /** SHA-256 of the controller's certificate, 64 lower-case hex digits: for certificates that nobody signed. */
  readonly certificateFingerprint?: string | undefined
  /** PEM of the authority that signed the certificate; the host's own trust store when both are absent. */
  readonly authority?: string | undefined
}

/** The interface of fencing to the management controller of a host (BMC). `redfish.ts` and `ipmi.ts` implement it;
 *  `controllers/nouns/node/fence.ts` decides when power is cut and what that proves. */

/** `on` unless the controller clearly reports off: also while the host is powering on or off. */
export type PowerState = 'on' | 'off'

export interface PowerControl {
  /** Throws PowerControlFailed when the controller does not answer, or its answer proves nothing. */
  powerState(): Promise<PowerState>
  /** Resolves when the controller has accepted to cut the power at once; a host that is off already is no error. Throws
   *  PowerControlFailed. */
  powerOff(): Promise<void>
}

/** The message is for operators and contains no secret. */
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
  /** SHA-256 of the controller's certificate, 64 lower-case hex digits: for self-signed certificates. */
  readonly certificateFingerprint?: string | undefined
  /** PEM of the authority that signed the certificate; the host's own trust store when both are absent. */
  readonly authority?: string | undefined
}

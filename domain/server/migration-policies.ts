/** Migration policies: how much a live migration may disturb its guest before it is given up. */

export interface MigrationPolicy {
  /** Sends under the policy, the first one included. */
  readonly attemptsMaximum: number
  /** How long the guest may stand still when it is handed over. */
  readonly downtimeLimitMilliseconds: number
  /** Whether later attempts may slow the guest, so that its memory changes no faster than it is sent. */
  readonly mayThrottle: boolean
  /** How long one send may take, for each GiB of the guest's memory and disks that are sent with it. */
  readonly sendSecondsPerGibibyte: number
  /** Whether a guest that cannot be sent while it runs is stopped, moved and started. */
  readonly isColdAllowed: boolean
}

export const MIGRATION_POLICIES = {
  default: {
    attemptsMaximum: 3,
    downtimeLimitMilliseconds: 2_000,
    mayThrottle: true,
    sendSecondsPerGibibyte: 120,
    isColdAllowed: false,
  },
  relaxed: {
    attemptsMaximum: 5,
    downtimeLimitMilliseconds: 5_000,
    mayThrottle: true,
    sendSecondsPerGibibyte: 300,
    isColdAllowed: true,
  },
  strict: {
    attemptsMaximum: 2,
    downtimeLimitMilliseconds: 300,
    mayThrottle: false,
    sendSecondsPerGibibyte: 120,
    isColdAllowed: false,
  },
} as const satisfies Record<string, MigrationPolicy>
export type MigrationPolicyName = keyof typeof MIGRATION_POLICIES

/** How an operation moves a running server: only while it runs, so if that can be, or by stopping it. */
export const MIGRATION_MODES = ['live', 'live_then_cold', 'cold'] as const
export type MigrationMode = (typeof MIGRATION_MODES)[number]

const MEBIBYTES_PER_GIBIBYTE = 1_024

/** What has to be sent of a server, in GiB; what is absent has not. */
export const gibibytesOf = ({
  memoryMebibytes = 0,
  storageGibibytes = 0,
}: {
  readonly memoryMebibytes?: number | undefined
  readonly storageGibibytes?: number | undefined
}): number => memoryMebibytes / MEBIBYTES_PER_GIBIBYTE + storageGibibytes

const SEND_SECONDS_LEAST = 120

/** How long one send of so many GiB may take, in seconds. */
export const sendSeconds = (policy: MigrationPolicy, gibibytes: number): number =>
  Math.ceil(SEND_SECONDS_LEAST + policy.sendSecondsPerGibibyte * gibibytes)

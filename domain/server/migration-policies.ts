/** Migration policies: how much a live migration may disturb its guest before it is abandoned. */

export interface MigrationPolicy {
  /** Attempts under the policy, including the first one. */
  readonly attemptsMaximum: number
  /** How long the guest may be paused for the handover. */
  readonly downtimeLimitMilliseconds: number
  /** Whether later attempts may slow the guest down, so that its memory changes no faster than it is sent. */
  readonly mayThrottle: boolean
  /** How long one attempt may take, for each GiB of the guest's memory and disks that are sent with it. */
  readonly sendSecondsPerGibibyte: number
  /** Whether a guest that cannot be migrated live is stopped, moved and started. */
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

/** How an operation moves a running server: only live, live if possible, or by stopping it. */
export const MIGRATION_MODES = ['live', 'live_then_cold', 'cold'] as const
export type MigrationMode = (typeof MIGRATION_MODES)[number]

const MEBIBYTES_PER_GIBIBYTE = 1_024

/** What must be sent of a server, in GiB; absent parts are not sent. */
export const gibibytesOf = ({
  memoryMebibytes = 0,
  storageGibibytes = 0,
}: {
  readonly memoryMebibytes?: number | undefined
  readonly storageGibibytes?: number | undefined
}): number => memoryMebibytes / MEBIBYTES_PER_GIBIBYTE + storageGibibytes

const SEND_SECONDS_LEAST = 120

/** How long one attempt with so many GiB may take, in seconds. */
export const sendSeconds = (policy: MigrationPolicy, gibibytes: number): number =>
  Math.ceil(SEND_SECONDS_LEAST + policy.sendSecondsPerGibibyte * gibibytes)

/** What a host's network provides to the servers on it, and what it does not: for programs in a word, for people in
 *  sentences. */

/** The network features in a host's report. With none of the first three, its guests are only simulated. */
export const NETWORK_FEATURES = {
  public: 'public-network',
  outbound: 'user-network-outbound',
  isolated: 'user-network-isolated',
  metadata: 'metadata-service',
} as const

export interface NetworkVerdict {
  /** The server reaches others and the outside, and they reach it at its addresses. */
  readonly isWhole: boolean
  /** One CamelCase word. */
  readonly reason: 'PublicNetwork' | 'NoWayOutside' | 'UserModeNetworking' | 'Isolated' | 'Simulated'
  /** What is disabled; empty when nothing is. */
  readonly message: string
}

const OFF = {
  NoWayOutside:
    'The zone has no public network. Its servers reach each other, but nothing outside, and nothing outside ' +
    'reaches them.',
  UserModeNetworking:
    'The host has no network for servers. The server reaches the outside from the address of its host. Neither ' +
    'other servers nor anything outside reach it, and its public addresses do not work.',
  Isolated:
    'The host has no network for servers. The server reaches nothing, nothing reaches it, and its public ' +
    'addresses do not work.',
  Simulated: 'The server is simulated and has no network.',
} as const
const NO_METADATA = 'The metadata service does not answer.'
/** The text for a server whose host has not reported yet. */
export const NO_PUBLIC_NETWORK = 'The zone has no public network: nothing outside reaches its servers.'

/** `features` are those of the server's host; `hasWayOutside`: its zone has a public network. */
export function networkVerdict(features: readonly string[], hasWayOutside: boolean): NetworkVerdict {
  const has = (feature: keyof typeof NETWORK_FEATURES) => features.includes(NETWORK_FEATURES[feature])
  const reason = has('public')
    ? hasWayOutside
      ? 'PublicNetwork'
      : 'NoWayOutside'
    : has('outbound')
      ? 'UserModeNetworking'
      : has('isolated')
        ? 'Isolated'
        : 'Simulated'
  const off = [
    ...(reason === 'PublicNetwork' ? [] : [OFF[reason]]),
    ...(reason === 'Simulated' || has('metadata') ? [] : [NO_METADATA]),
  ]
  return { isWhole: off.length === 0, reason, message: off.join(' ') }
}

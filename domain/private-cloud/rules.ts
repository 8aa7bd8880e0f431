/** Hosts for one account alone: what may be requested, the progress of a request, and whether nodes are enough for
 *  it. */
import { badField, conflict, Problem } from '../problem.ts'

/** `open` waits for staff; `declined` has their reason; the account itself withdrew a `withdrawn` one. */
export const PRIVATE_CLOUD_STATES = ['open', 'in_review', 'fulfilled', 'declined', 'withdrawn'] as const
export type PrivateCloudState = (typeof PRIVATE_CLOUD_STATES)[number]

export interface PrivateCloudAmounts {
  readonly vcpus: number
  readonly memoryGibibytes: number
  /** 10^9 bytes, raw. */
  readonly diskGigabytes: number
}

/** About the smallest host that is worth assigning. */
export const AMOUNTS_MINIMUM: PrivateCloudAmounts = { vcpus: 4, memoryGibibytes: 8, diskGigabytes: 50 }
/** Larger requests need a conversation first. */
export const AMOUNTS_MAXIMUM: PrivateCloudAmounts = {
  vcpus: 8_192,
  memoryGibibytes: 32_768,
  diskGigabytes: 2_000_000,
}
export const NOTES_LENGTH_MAXIMUM = 2_000

const FIELDS = { vcpus: 'vcpus', memoryGibibytes: 'memory_gibibytes', diskGigabytes: 'disk_gigabytes' } as const
// the object has these keys
const AMOUNTS = Object.keys(FIELDS) as (keyof PrivateCloudAmounts)[]

/** Throws 422 for an amount outside of the bounds, and for notes that are too long. */
export function requireAmounts(amounts: PrivateCloudAmounts, notes: string): void {
  for (const amount of AMOUNTS) {
    const [least, most] = [AMOUNTS_MINIMUM[amount], AMOUNTS_MAXIMUM[amount]]
    if (amounts[amount] < least || amounts[amount] > most)
      throw unprocessable(FIELDS[amount], `must be between ${least} and ${most}`)
  }
  if (notes.length > NOTES_LENGTH_MAXIMUM)
    throw unprocessable('notes', `must have at most ${NOTES_LENGTH_MAXIMUM} characters`)
}

/** 422: the value of the field is understood but cannot be granted. */
export const unprocessable = (field: string, detail: string): Problem =>
  new Problem(422, `${field}: ${detail}.`, { errors: [{ field, detail }] })

/** The states from which a request may change to each state. */
const STEPS: Readonly<Record<Exclude<PrivateCloudState, 'open'>, readonly PrivateCloudState[]>> = {
  in_review: ['open'],
  fulfilled: ['in_review'],
  declined: ['open', 'in_review'],
  withdrawn: ['open', 'in_review'],
}

/** Throws 409 unless the request may change to that state now. */
export function requireStep(before: PrivateCloudState, after: keyof typeof STEPS): void {
  if (!STEPS[after].includes(before))
    throw conflict(
      'state_not_allowed',
      `The request is ${before.replace('_', ' ')}: it cannot be ${STEP_NAMES[after]}.`,
    )
}
const STEP_NAMES = {
  in_review: 'reviewed',
  fulfilled: 'fulfilled before it is reviewed',
  declined: 'declined now',
  withdrawn: 'withdrawn now',
} as const

/** A node that may be assigned. */
export interface SpareNode {
  readonly id: string
  readonly region: string | undefined
  readonly cores: number
  readonly memoryMebibytes: number
  readonly storageGibibytes: number
  readonly dedicatedAccountId: string | null
  /** No guest is on it, or on its way to it. */
  readonly isEmpty: boolean
}

const MEBIBYTES_PER_GIBIBYTE = 1_024
const GIGABYTES_PER_GIBIBYTE = 1.073741824

/** Throws 409 unless all nodes are free, and together are as large as the request. */
export function requireEnoughNodes(
  wanted: PrivateCloudAmounts & { readonly region: string | null },
  nodes: readonly SpareNode[],
): void {
  for (const node of nodes) {
    const resource = { type: 'node', id: node.id }
    if (node.dedicatedAccountId !== null)
      throw conflict('in_use', `Node ${node.id} is dedicated to an account already.`, { resource })
    if (!node.isEmpty)
      throw conflict('in_use', `Something is placed on node ${node.id}: only an empty node changes hands.`, {
        resource,
      })
    if (wanted.region !== null && node.region !== wanted.region)
      throw badField('node_ids', `node ${node.id} is not in region ${wanted.region}, which the account asked for`)
  }
  const total = amountsOf(nodes)
  const lacking = AMOUNTS.filter((amount) => total[amount] < wanted[amount])
  if (lacking.length > 0)
    throw conflict(
      'state_not_allowed',
      `The nodes are too small together: ${lacking
        .map((amount) => `${FIELDS[amount]} ${total[amount]} of ${wanted[amount]}`)
        .join(', ')}.`,
    )
}

const amountsOf = (nodes: readonly SpareNode[]): PrivateCloudAmounts => ({
  vcpus: sum(nodes, ({ cores }) => cores),
  memoryGibibytes: Math.floor(sum(nodes, ({ memoryMebibytes }) => memoryMebibytes) / MEBIBYTES_PER_GIBIBYTE),
  diskGigabytes: gigabytesOf(sum(nodes, ({ storageGibibytes }) => storageGibibytes)),
})

/** In whole units. */
export const gigabytesOf = (gibibytes: number): number => Math.floor(gibibytes * GIGABYTES_PER_GIBIBYTE)

const sum = <Item>(items: readonly Item[], of: (item: Item) => number): number =>
  items.reduce((total, item) => total + of(item), 0)

/** Steps that the plans of networks, routers and floating IPs share: the claims and the rows of OVN become what the
 *  spec says. */
import { failed, reconciling } from './synced.ts'

/** No event wakes the reconciler when the hosts have installed the rows. */
const INSTALLED_LOOK_SECONDS = 1

export interface SyncInput<Root, Observed> {
  readonly root: Root
  readonly observed: Observed
}

export interface OfAccount {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
}

export const hasAccount = ({ observed }: { readonly observed: OfAccount }) =>
  observed.accountId === undefined ? failed('claimed', 'The namespace belongs to no account.') : undefined

/** A zone that lost its private networks gets them back; one that never had any is refused. */
export function hasZone({
  root: { spec },
  observed: { hasNetworks, claim },
}: SyncInput<
  { readonly spec: { readonly zone: string } },
  { readonly hasNetworks: boolean; readonly claim: unknown }
>) {
  if (hasNetworks) return undefined
  return claim === undefined
    ? failed('claimed', `The zone ${spec.zone} has no private networks.`)
    : {
        ...reconciling('Waiting'),
        step: 'applied' as const,
        waitFor: `zone ${spec.zone} to have private networks again`,
      }
}

/** Its rows in OVN are as the facts say. */
export const applied = <Facts>({
  observed: { facts, isApplied },
}: {
  readonly observed: { readonly facts: Facts | undefined; readonly isApplied: boolean }
}) =>
  facts === undefined || isApplied
    ? undefined
    : {
        ...reconciling('Applying'),
        step: 'applied' as const,
        actions: [{ do: 'effect', name: 'apply', input: { facts } } as const],
        waitFor: 'the network',
        waitSeconds: 0,
      }

/** Its hosts have installed what was written last; `hosts` names them, for people. */
export const installed =
  (hosts: string) =>
  ({
    root: { status },
    observed,
  }: SyncInput<
    { readonly status?: { readonly appliedSequence?: number | undefined } | undefined },
    { readonly installed: number | undefined }
  >) =>
    observed.installed === undefined || observed.installed >= (status?.appliedSequence ?? 0)
      ? undefined
      : {
          ...reconciling('Applying'),
          step: 'installed' as const,
          waitFor: hosts,
          waitSeconds: INSTALLED_LOOK_SECONDS,
        }

/** Removes its rows, then releases its claims. `id` is undefined when the namespace is no account's. */
export const releasing = <Id>(zone: string, id: Id | undefined) => ({
  ...reconciling('Deleting'),
  step: 'installed' as const,
  outcome: 'succeeded' as const,
  actions: [{ do: 'effect', name: 'release', input: { zone, id } } as const],
  isGone: true,
})

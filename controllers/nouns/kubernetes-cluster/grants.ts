/** Tokens of a cluster for its add-ons: when one is due, and how it is created and handed over. Only the host of the
 *  control plane ever has its text. */
import {
  type ClusterClaim,
  type ClusterId,
  createClusterToken,
  endOtherClusterTokens,
  keepOneClusterToken,
} from '../../../db/kubernetes-cluster/index.ts'
import { ADDON_SCOPES, type AddonName, isAddonName } from '../../../integrations/control-planes/addons.ts'
import type { ControlPlanes } from '../../../integrations/control-planes/control.ts'
import { newBase62, newUuid } from '../../../kit/sys/random.ts'
import { formatClusterToken, TOKEN_SECRET_CHARACTERS } from '../../../kit/sys/token-format.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { type ClusterEffect, idOf, type Input } from './observed.ts'

const HOUR_MILLISECONDS = 3_600_000
const RENEWED_AFTER_MILLISECONDS = 24 * HOUR_MILLISECONDS
/** After an outage of this length, add-ons can do nothing until the platform renews their tokens. */
const LIFETIME_MILLISECONDS = 72 * HOUR_MILLISECONDS
/** For how long the previous token stays valid after its host has replaced it: programs in pods have the new one a
 *  minute later. */
const OVERLAP_MILLISECONDS = HOUR_MILLISECONDS

/** A grant for each add-on that its host can run and that has no token, an old one, or an unknown one. */
export function dueGrants(input: Input): readonly ClusterEffect[] {
  const { host, tokens } = input.observed
  const plane = 'obstacle' in host ? undefined : host.plane
  return (plane?.grants ?? []).flatMap(({ addon, tokenId }): readonly ClusterEffect[] => {
    const token = tokens.find(({ id }) => id === tokenId)
    const age = token === undefined ? Infinity : input.now.getTime() - token.createdAt.getTime()
    return isAddonName(addon) && age >= RENEWED_AFTER_MILLISECONDS
      ? [{ do: 'effect', name: 'grant', input: { ...idOf(input), addon, tokenId } }]
      : []
  })
}

export interface KubeconfigGrant extends ClusterId {
  readonly addon: AddonName
  readonly tokenId: string | null
}

/** A token that was created but never handed over is deleted when the next one is created. */
export async function grantToken(
  { db, clock, random }: Pick<Parts, 'db' | 'clock' | 'random'>,
  { addon, tokenId, ...id }: KubeconfigGrant,
  { claim, control }: { readonly claim: ClusterClaim; readonly control: ControlPlanes },
): Promise<void> {
  const createdAt = clock.now()
  const grant = { id: newUuid(random), program: addon, createdAt }
  const token = formatClusterToken(newBase62(random, TOKEN_SECRET_CHARACTERS))
  const expiresAt = new Date(createdAt.getTime() + LIFETIME_MILLISECONDS)
  await orUnavailable(
    db.transaction().execute(async (tx) => {
      await keepOneClusterToken(tx, id, { id: tokenId ?? grant.id, program: addon })
      await createClusterToken(tx, id, { ...grant, token, scopes: ADDON_SCOPES[addon], expiresAt })
    }),
  )
  const { clusterId } = id
  await control.grant(claim.controlPlaneId, addon, { tokenId: grant.id, token, clusterId, zone: claim.zone })
  // Tokens that no host has end at once.
  if (tokenId === null) await orUnavailable(keepOneClusterToken(db, id, grant))
  const at = new Date(createdAt.getTime() + OVERLAP_MILLISECONDS)
  await orUnavailable(endOtherClusterTokens(db, id, { ...grant, at }))
}

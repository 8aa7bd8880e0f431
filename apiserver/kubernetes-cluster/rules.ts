/** What managed Kubernetes clusters need of their surroundings, whichever door a request comes through. */
import { newestRelease, minorsOf } from '../../domain/kubernetes-cluster.ts'
import { badField, notFound, zoneLacks } from '../../domain/problem.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { Parts } from '../parts.ts'

export interface Offered {
  readonly region: string
  /** Of Kubernetes; at least one. */
  readonly releases: readonly string[]
}

/** By what the zone says of itself. Throws 400 for a zone that is not there, and 409 with the cause for one without
 *  private networks or without Kubernetes. */
export function requireKubernetes(parts: Pick<Parts, 'caches'>, zone: string, field?: string): Offered {
  requirePrivateNetworks(parts, zone, field)
  const { spec, status } = parts.caches.of(Zone).get({ name: zone }) ?? {}
  const { kubernetesReleases: releases = [], kubernetesObstacle = 'nothing is known of it yet' } = status ?? {}
  if (spec === undefined || releases.length === 0)
    throw zoneLacks('kubernetes', `Zone ${zone} has no Kubernetes: ${kubernetesObstacle}.`)
  return { region: spec.region, releases }
}

/** The newest release of the minor version, or of all. Throws 400 for one that is not offered. */
export function requireRelease(releases: readonly string[], version: string | undefined, field = 'version'): string {
  const minors = minorsOf(releases)
  const release = newestRelease(version ?? minors[0] ?? '', releases)
  if (release === undefined) throw badField(field, `is not offered here; offered are ${minors.join(', ')}`)
  return release
}

/** Throws 404 for a network that is not there. */
export function requireNetwork({ caches }: Pick<Parts, 'caches'>, accountId: string, networkId: string): void {
  const network = caches.of(Network).get({ namespace: accountNamespace(accountId), name: networkId })
  if (network === undefined) throw notFound('network')
}

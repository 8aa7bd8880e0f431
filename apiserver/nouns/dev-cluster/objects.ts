/** Dev clusters for requests. */
import { newestRelease } from '../../../domain/kubernetes-cluster/rules.ts'
import { DEV_CLUSTER_RELEASES } from '../../../domain/kubernetes-cluster/versions.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import {
  DevCluster,
  type DevClusterSpec,
  type DevClusterStatus,
  type DevClusterView,
  toDevClusterView,
} from '../../../resources/dev-cluster/index.ts'
import { type ObjectParts, type Objects, openObjects } from '../../kit/plain/objects.ts'

export type DevClusterObject = KubeObject<DevClusterSpec, DevClusterStatus>
export type DevClusters = Objects<DevClusterSpec, DevClusterStatus, DevClusterView>

export const openDevClusters = (parts: ObjectParts): DevClusters =>
  openObjects(parts, {
    name: 'dev_cluster',
    title: 'dev cluster',
    resource: DevCluster,
    surroundingsOf: ({ spec }) => ({
      region: parts.caches.of(Zone).get({ name: spec.zone })?.spec.region ?? '',
      release: newestRelease(spec.version, DEV_CLUSTER_RELEASES) ?? '',
    }),
    labelsOf: ({ labels }) => labels,
    toView: toDevClusterView,
  })

import { DevCluster, listDevClusters } from '../../../resources/dev-cluster/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { objectFeed, zonesOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import { devClusterChanges } from '../../../changes/dev-cluster.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { type DevClusters, openDevClusters } from './objects.ts'
import { devClusterEndpoints, type DevClusterParts } from './endpoints.ts'

export const devCluster = noun<DevClusterParts, { readonly devClusters: DevClusters }>({
  name: 'dev_cluster',
  kinds: [kind(DevCluster, { access: 'write', admission: admissionOf(devClusterChanges) })],
  open: (parts) => ({ devClusters: openDevClusters(parts) }),
  endpoints: devClusterEndpoints,
  feeds: ({ devClusters, caches }) => [objectFeed('dev_cluster', listDevClusters, devClusters, [zonesOf(caches)])],
})

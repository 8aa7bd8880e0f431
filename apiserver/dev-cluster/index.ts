import { DevCluster } from '../../resources/dev-cluster/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { devClusterAdmission } from './admission.ts'
import { type DevClusters, openDevClusters } from './clusters.ts'
import { devClusterEndpoints, type DevClusterParts } from './endpoints.ts'

export const devCluster = noun<DevClusterParts, { readonly devClusters: DevClusters }>({
  name: 'dev_cluster',
  kinds: [kind(DevCluster, { access: 'write', admission: devClusterAdmission })],
  open: (parts) => ({ devClusters: openDevClusters(parts) }),
  endpoints: devClusterEndpoints,
})

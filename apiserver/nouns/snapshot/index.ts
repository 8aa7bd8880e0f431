import { Snapshot } from '../../../resources/snapshot/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import { snapshotAdmission } from './admission.ts'
import { snapshotEndpoints, type SnapshotParts } from './endpoints.ts'
import { openSnapshots, type Snapshots } from './objects.ts'

export const snapshot = noun<SnapshotParts, { readonly snapshots: Snapshots }>({
  name: 'snapshot',
  kinds: [kind(Snapshot, { access: 'write', target: 'snapshot', admission: snapshotAdmission })],
  open: (parts) => ({ snapshots: openSnapshots(parts) }),
  endpoints: snapshotEndpoints,
})

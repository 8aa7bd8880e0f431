import { Backup } from '../../../resources/backup/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import { backupAdmission } from './admission.ts'
import { type Backups, openBackups } from './objects.ts'
import { backupEndpoints, type BackupParts } from './endpoints.ts'

export type { Backups }

export const backup = noun<BackupParts, { readonly backups: Backups }>({
  name: 'backup',
  kinds: [kind(Backup, { access: 'write', target: 'backup', admission: backupAdmission })],
  open: (parts) => ({ backups: openBackups(parts) }),
  endpoints: backupEndpoints,
})

/** Secrets of the node's namespace. */
import { Unavailable } from '../../domain/problem.ts'
import { Secret } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { BACKUP_KEY, BACKUP_PLACE, BackupPlace, backupPlaceSecret } from '../../resources/backup-job/index.ts'
import { MACHINE_DOCUMENT_KEY } from '../../resources/managed-machine/index.ts'
import type { InstanceSpec } from '../../resources/instance/index.ts'

const USER_DATA_KEY = 'userData'
const MOVE_KEY = 'psk'

/** The bytes of a key; Unavailable while they do not exist. */
async function readSecret(store: Store, namespace: string, name: string, key: string): Promise<Buffer> {
  const text = (await store.get(Secret, { namespace, name }))?.data?.[key]
  if (text === undefined) throw new Unavailable(`${key} in Secret ${name}`, undefined)
  return Buffer.from(text, 'base64')
}

/** Undefined when the server has none. */
export const readUserDataSecret = async (
  store: Store,
  namespace: string,
  { metadata: { userDataSecretName: name } }: InstanceSpec,
): Promise<Buffer | undefined> => (name === undefined ? undefined : readSecret(store, namespace, name, USER_DATA_KEY))

/** The key of an account's backups, 32 bytes. */
export const readBackupKey = async (store: Store, namespace: string, name: string): Promise<Buffer> =>
  Buffer.from((await readSecret(store, namespace, name, BACKUP_KEY)).toString(), 'hex')

/** Location and credentials of the account's backups in the object storage of the zone. */
export const readBackupPlace = async (
  store: Store,
  namespace: string,
  { accountId, zone }: { readonly accountId: string; readonly zone: string },
): Promise<BackupPlace> => {
  const text = await readSecret(store, namespace, backupPlaceSecret(accountId, zone), BACKUP_PLACE)
  return BackupPlace.parse(JSON.parse(text.toString()))
}

/** The configuration of a managed machine, as JSON. */
export const readMachineDocument = async (store: Store, namespace: string, name: string): Promise<string> =>
  (await readSecret(store, namespace, name, MACHINE_DOCUMENT_KEY)).toString()

/** The shared key of both ends of a move: 64 hex digits. */
export const readMoveKey = async (store: Store, namespace: string, name: string): Promise<string> =>
  (await readSecret(store, namespace, name, MOVE_KEY)).toString()

/** What watches backups in simulated worlds finds what is wrong; the worlds are in `backups.seeds.test.ts`. */
import { expect, it } from 'vitest'
import { Backup } from '../../resources/backup/index.ts'
import type { Resource } from '../../resources/kit/define.ts'
import type { BackupStores } from './backup-stores.ts'
import { checkBackups } from './backups.ts'

it('finds what a store has lost, kept of the wrong disk, and was left with', async () => {
  const backup = (name: string) => ({
    metadata: { name, namespace: 'acct-a' },
    spec: { storageId: 'disk', zone: 'zone-a' },
    status: { state: 'online', zone: 'zone-a' },
  })
  const disk = { metadata: { name: 'disk', namespace: 'acct-a', uid: 'own' }, spec: {}, status: { state: 'online' } }
  const items = [backup('whole'), backup('lost'), backup('mixed')]
  const list = async (type: Resource) => ({ items: type.kind === Backup.kind ? items : [disk] })
  const backups: BackupStores = {
    inZone: new Map([['zone-a', new Map(['whole', 'mixed', 'left'].map((name) => [name, 1]))]]),
    kept: new Map(
      ['whole', 'lost', 'mixed'].map((name) => [name, { volume: name === 'mixed' ? 'x' : 'own', content: 1 }]),
    ),
    failure: 0,
  }
  const world = { admin: { list }, backups, hosts: [], disks: {} } as unknown as Parameters<typeof checkBackups>[0]
  expect(await checkBackups(world)).toEqual([
    'backup lost is online, and no store of its zone has it',
    'backup mixed is of storage disk, and holds what disk x held',
    'backup left is left in the store of zone-a',
  ])
})

import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { CustomImage, type CustomImageStatus } from '../../../resources/custom-image/index.ts'
import { backup, busy, disk, MACHINE, server, snapshot, UNKNOWN } from '../fixtures.ts'
import { asking, differing, type Given, type Row, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const FILE = { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) }
const BODY = { source_url: FILE.url, checksum_sha256: FILE.checksum }
const { create, change, remove, edit, request, ofPlatform, creationNeeds } = asking(
  '/custom-images',
  { zone, title: 'Mine', labels: {} },
  { rest: BODY, kubectl: { source: FILE } },
)
const NO_FILE = { source_url: undefined, checksum_sha256: undefined }
/** REST names the source by a field for each kind. */
const from = (
  what: string,
  source: object,
  body: object,
  more: { readonly given?: Given; readonly at?: string } = {},
): Row =>
  create(what, { zone: more.at ?? zone }, { rest: { ...NO_FILE, ...body }, kubectl: { source }, given: more.given })
const image =
  (status: Partial<CustomImageStatus> = {}, spec: object = {}, { isDeleting = false } = {}): Given =>
  ({ put }) =>
    put(
      CustomImage,
      newUuid(systemRandom),
      { zone, title: 'Mine', labels: {}, source: FILE, ...spec },
      { state: 'online', sizeGibibytes: 1, ...status },
      { isDeleting },
    )
const ofIt =
  (kind: 'storage' | 'snapshot' | 'backup') =>
  (what: string, given: Given, at = zone): Row =>
    from(`of a ${kind} ${what}`.trim(), { [`${kind}Id`]: ':it' }, { [`source_${kind}_id`]: ':it' }, { at, given })
const ofStorage = ofIt('storage')
const ofSnapshot = ofIt('snapshot')
const ofBackup = ofIt('backup')
/** A copy is a separate route of REST. */
const copy = (what: string, given: Given, at: string): Row => ({
  ...create(`as a copy ${what}`, { zone: at }, { kubectl: { source: { imageId: ':it' } } }),
  given,
  rest: { method: 'POST', path: '/custom-images/:it/copy', body: { zone: at } },
})
const removed = (what: string, given: Given): Row => ({ ...remove(what, 'it'), given })

const STATES = ['creating', 'error', 'deleting'] as const

export const TABLE: Table = {
  resource: CustomImage,
  async arrange(scene) {
    scene.ids['mine'] = await image()(scene)
  },
  rows: [
    create(''),
    create('of nothing', {}, { rest: NO_FILE, kubectl: { source: {} } }),
    create(
      'of two sources',
      {},
      { rest: { source_storage_id: UNKNOWN }, kubectl: { source: { ...FILE, storageId: UNKNOWN } } },
    ),
    create(
      'of a file without its checksum',
      {},
      { rest: { checksum_sha256: undefined }, kubectl: { source: { url: FILE.url } } },
    ),
    create(
      'of a checksum without its file',
      {},
      { rest: { source_url: undefined }, kubectl: { source: { checksum: FILE.checksum } } },
    ),
    create(
      'of a file by http',
      {},
      {
        rest: { source_url: 'http://x.example/a' },
        kubectl: { source: { ...FILE, url: 'http://x.example/a' } },
      },
    ),
    create(
      'of a file with a checksum of no form',
      {},
      {
        rest: { checksum_sha256: 'x' },
        kubectl: { source: { ...FILE, checksum: 'x' } },
      },
    ),
    create(
      'of a storage with a checksum',
      {},
      { rest: { source_url: undefined, source_storage_id: UNKNOWN }, kubectl: false },
    ),
    create('without a title', { title: '' }),
    create('in no zone', { zone: 'nowhere' }),
    create('with a title that nobody can read', { title: 'a\u0007' }),
    create('with labels of no form', { labels: { 'a b': '' } }),
    ofStorage('that is not there', async () => UNKNOWN),
    ofStorage('', disk()),
    ofStorage('of another zone', disk(), 'bare'),
    ofStorage('in error', disk({ status: { state: 'error' } })),
    ofStorage('that is too large', disk({ spec: { sizeGibibytes: 1_025 } })),
    ofStorage('of a server that runs', async (scene) => {
      const serverId = await server({ spec: { desiredPower: 'running' }, status: { state: 'started' } })(scene)
      return disk({ spec: { serverId }, status: { serverId } })(scene)
    }),
    ...differing(
      WHY.hiddenMachine,
      ofStorage('of a machine', async () => MACHINE),
    ),
    ofStorage('that is being deleted', disk({}, { isDeleting: true })),
    ofSnapshot('', snapshot()),
    ofSnapshot('that is not there', async () => UNKNOWN),
    ofSnapshot('of another zone', snapshot(), 'bare'),
    ofSnapshot('that is being taken', snapshot({ status: { state: 'creating' } })),
    ofSnapshot('that is too large', snapshot({ status: { sizeGibibytes: 1_025 } })),
    ofBackup('', backup()),
    ofBackup('that is not there', async () => UNKNOWN),
    ofBackup('of another zone', backup(), 'bare'),
    ofBackup('that did not verify', backup({ status: { verificationError: 'A part is missing.' } })),
    ofBackup('that is too large', backup({ status: { sizeGibibytes: 1_025 } })),
    copy('of one that is not there', async () => UNKNOWN, 'bare'),
    copy('in its zone', image(), zone),
    ...STATES.map((state) => copy(`of one that is ${state}`, image({ state }), 'bare')),
    copy('in no zone', image(), 'nowhere'),
    copy('', image(), 'bare'),
    ...creationNeeds('address', 'credit', 'quota'),
    create('without room in the quota of images', {}, { lacks: 'quota', quota: 'custom_images' }),
    ...ofPlatform('mine', 'template.create'),

    change('rename', 'mine', { title: 'Golden' }),
    change('rename so that nobody can read it', 'mine', { title: 'a\u0007' }),
    change('label so that nobody can read it', 'mine', { labels: { 'a b': '' } }),
    change('change nothing', 'mine', {}),
    change('rename to nothing', 'mine', { title: '' }),
    change('label', 'mine', { labels: { a: 'b' } }),
    change('rename one that is busy', 'it', { title: 'b' }, { given: image({}, busy('template.create').spec) }),
    change('rename one that is being deleted', 'it', { title: 'b' }, { given: image({}, {}, { isDeleting: true }) }),
    edit('move', 'mine', { spec: { zone: 'bare' } }),
    edit('change the source', 'mine', { spec: { source: { ...FILE, checksum: 'b'.repeat(64) } } }),
    request('change one that is not there', 'PATCH', `/${UNKNOWN}`, { title: 'a' }),

    ...differing(
      WHY.deletionWaits,
      removed('one that is being made', image({ state: 'creating' }, busy('template.create').spec)),
      removed('one in state creating', image({ state: 'creating' })),
    ),
    ...differing(WHY.deletedAgain, removed('one that is being deleted', image({}, {}, { isDeleting: true }))),
    ...(['error', 'deleting'] as const).map((state) => removed(`one in state ${state}`, image({ state }))),
    removed('one that is not there', async () => UNKNOWN),
    removed('', image()),
  ],
}

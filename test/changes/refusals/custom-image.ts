import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { CustomImage, type CustomImageStatus } from '../../../resources/custom-image/index.ts'
import { disk, server, UNKNOWN } from '../fixtures.ts'
import { asking, type Given, type Row, type Table } from '../refusals.ts'

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
  (status: Partial<CustomImageStatus> = {}, spec: object = {}): Given =>
  ({ put }) =>
    put(
      CustomImage,
      newUuid(systemRandom),
      { zone, title: 'Mine', labels: {}, source: FILE, ...spec },
      { state: 'online', sizeGibibytes: 1, ...status },
    )
const ofStorage = (what: string, given: Given | undefined, at = zone): Row =>
  from(what, { storageId: ':it' }, { source_storage_id: ':it' }, { at, ...(given && { given }) })
/** A copy is a separate route of REST. */
const copy = (what: string, given: Given, at: string): Row => ({
  ...create(`as a copy ${what}`, { zone: at }, { kubectl: { source: { imageId: ':it' } } }),
  given,
  rest: { method: 'POST', path: '/custom-images/:it/copy', body: { zone: at } },
})
const removed = (what: string, given: Given): Row => ({ ...remove(what, 'it'), given })

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
    create('in no zone', { zone: 'nowhere' }),
    create('with a title that nobody can read', { title: 'a\u0007' }),
    create('with labels of no form', { labels: { 'a b': '' } }),
    ofStorage('of a storage that is not there', async () => UNKNOWN),
    ofStorage('of a storage', disk()),
    ofStorage('of a storage of another zone', disk(), 'bare'),
    ofStorage('of a storage in error', disk({ status: { state: 'error' } })),
    ofStorage('of a storage that is too large', disk({ spec: { sizeGibibytes: 1_025 } })),
    ofStorage('of the storage of a server that runs', async (scene) => {
      const serverId = await server({ spec: { desiredPower: 'running' }, status: { state: 'started' } })(scene)
      return disk({ spec: { serverId }, status: { serverId } })(scene)
    }),
    ...(['snapshot', 'backup'] as const).map((kind) =>
      from(`of no ${kind}`, { [`${kind}Id`]: UNKNOWN }, { [`source_${kind}_id`]: UNKNOWN }),
    ),
    copy('of one that is not there', async () => UNKNOWN, 'bare'),
    copy('in its zone', image(), zone),
    copy('of one that is not online', image({ state: 'creating' }), 'bare'),
    copy('in no zone', image(), 'nowhere'),
    copy('', image(), 'bare'),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('mine', 'template.create'),

    change('rename', 'mine', { title: 'Golden' }),
    change('rename so that nobody can read it', 'mine', { title: 'a\u0007' }),
    change('label so that nobody can read it', 'mine', { labels: { 'a b': '' } }),
    edit('move', 'mine', { spec: { zone: 'bare' } }),
    edit('change the source', 'mine', { spec: { source: { ...FILE, checksum: 'b'.repeat(64) } } }),
    request('change one that is not there', 'PATCH', `/${UNKNOWN}`, { title: 'a' }),

    removed('one that is being made', image({ state: 'creating' })),
    removed('one that is not there', async () => UNKNOWN),
    removed('', image()),
  ],
}

import { Template } from '../../../resources/catalog/index.ts'
import { TINY_LINUX } from '../../catalog.ts'
import { asking, type Table } from '../refusals.ts'

const image = { url: 'https://images.example.com/disk.qcow2', checksum: 'a'.repeat(64) }
const kubectlOnly = { rest: false } as const
const { create, edit, remove, ofPlatform } = asking('/templates', { ...TINY_LINUX, image })

export const TABLE: Table = {
  resource: Template,
  async arrange({ put }) {
    await put(Template, 'good', { ...TINY_LINUX, image })
  },
  rows: [
    create('', {}, kubectlOnly),
    create('of two images', { image: { ...image, built: 'tiny-linux' } }, kubectlOnly),
    create('of a file without its checksum', { image: { url: image.url } }, kubectlOnly),
    create('for larger disks than there are', { minStorageGibibytes: 16_385 }, kubectlOnly),
    ...ofPlatform('good', 'template.create'),
    edit('deprecate', 'good', { spec: { deprecatedAt: '2026-01-01T00:00:00Z' } }),
    remove('', 'good', kubectlOnly),
  ],
}

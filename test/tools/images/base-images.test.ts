import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { baseImages } from '../../../tools/images/base-images.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`

test('a release can name every base image of the Dockerfile by its digest', async () => {
  const dockerfile = await readFile('Dockerfile', 'utf8')
  const [image, ...others] = baseImages(dockerfile)
  expect([image, others]).toEqual([{ name: expect.stringMatching(/^node:/), isPinned: false }, []])
  const pinned = `${image?.name}@${DIGEST}`
  expect(baseImages(dockerfile, { NODE_IMAGE: pinned })).toEqual([{ name: pinned, isPinned: true }])
})

test('an image that no argument names is seen, and stages are none', () => {
  const dockerfile = `ARG A=one:1\nFROM \${A} AS first\nRUN x\nFROM first AS second\nFROM two:2@${DIGEST}\nFROM three\n`
  expect(baseImages(dockerfile)).toEqual([
    { name: 'one:1', isPinned: false },
    { name: `two:2@${DIGEST}`, isPinned: true },
    { name: 'three', isPinned: false },
  ])
  expect(() => baseImages(dockerfile, { B: 'x' })).toThrow('no argument B')
})

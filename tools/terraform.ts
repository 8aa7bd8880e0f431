/** Builds the provider for Terraform and OpenTofu with Go, into `dist/terraform/`: `npm run build:terraform`. The
 *  definitions of nouns are copied beside its source first; the compiled program has them inside. */
import { execFile } from 'node:child_process'
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { VERSION } from '../domain/version.ts'
import { answerHelp } from '../kit/sys/help.ts'
import { environment, printLine } from '../kit/sys/process.ts'

const ROOT = join(import.meta.dirname, '..')
const SOURCE = join(ROOT, 'terraform')
export const PROVIDER_FOLDER = join(ROOT, 'dist/terraform')
const PROGRAM = join(PROVIDER_FOLDER, 'terraform-provider-svccloud')

/** Runs Go in the folder of the provider, with the definitions of today. */
export async function runGo(
  flags: readonly string[],
  target: { readonly GOOS?: string; readonly GOARCH?: string } = {},
): Promise<string> {
  await copyFile(join(ROOT, 'test/golden/definitions.json'), join(SOURCE, 'definitions.json'))
  // static: it also runs where there is no glibc
  const { stdout } = await promisify(execFile)('go', [...flags], {
    cwd: SOURCE,
    env: { ...environment(), ...target, CGO_ENABLED: '0' },
    maxBuffer: 16 * 1024 * 1024,
  })
  return stdout
}

/** Answers the program. */
export async function buildProvider(): Promise<string> {
  await mkdir(PROVIDER_FOLDER, { recursive: true })
  await runGo(['build', '-trimpath', '-ldflags', `-s -w -X main.version=${VERSION}`, '-o', PROGRAM, '.'])
  return PROGRAM
}

if (import.meta.main) {
  answerHelp(import.meta.filename)
  printLine(await buildProvider())
}

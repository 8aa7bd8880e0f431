/** The code blocks of the documentation. A block says what it is behind its fence: `sh` is run by a test, `sh not run:
 *  REASON` is not, for that reason. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Block {
  /** Path of the page in the repository, and line of the fence. */
  readonly page: string
  readonly line: number
  readonly language: string
  /** Why no test runs it; undefined when one does. */
  readonly reason: string | undefined
  readonly text: string
}

export const ROOT = join(import.meta.dirname, '../..')
const NOT_RUN = 'not run: '

export async function blocksOf(page: string): Promise<readonly Block[]> {
  const markdown = await readFile(join(ROOT, page), 'utf8')
  return [...markdown.matchAll(/^```([a-z]*) *(.*)\n([\s\S]*?)^```$/gm)].map((match) => {
    const [, language = '', rest = '', text = ''] = match
    return {
      page,
      line: markdown.slice(0, match.index).split('\n').length,
      language,
      text,
      reason: rest.startsWith(NOT_RUN) ? rest.slice(NOT_RUN.length) : undefined,
    }
  })
}

/** The blocks of a page that a test runs, in their order. */
export async function commandsOf(page: string): Promise<readonly Block[]> {
  const blocks = (await blocksOf(page)).filter(({ language, reason }) => language === 'sh' && reason === undefined)
  if (blocks.length === 0) throw new Error(`${page} has nothing to run`)
  return blocks
}

/** The same as one script. */
export async function scriptOf(page: string): Promise<string> {
  const blocks = await commandsOf(page)
  return `set -o pipefail\n${blocks.map(({ line, text }) => `echo '--- ${page}:${line}'\n${text}`).join('\n')}`
}

/** Whether this machine lacks one of the programs that a page uses. */
export async function isAnyMissing(...programs: readonly string[]): Promise<boolean> {
  const isMissing = (program: string) =>
    promisify(execFile)('/bin/sh', ['-c', `command -v ${program}`]).then(
      () => false,
      () => true,
    )
  return (await Promise.all(programs.map(isMissing))).some(Boolean)
}

/** Pages whose commands customers type, against a product with simulated guests. */
export const CUSTOMER_GUIDES = ['docs/getting-started.md', 'docs/rest.md', 'docs/cli.md', 'docs/mcp.md'] as const
/** Pages whose commands operators type, with kubectl as the administrator. */
export const OPERATOR_GUIDES = [
  'docs/kubernetes.md',
  'docs/identity.md',
  'docs/operating.md',
  'docs/cluster.md',
] as const
/** Run by separate tests. */
export const OTHER_GUIDES = [
  'README.md',
  'docs/nodes.md',
  'docs/high-availability.md',
  'docs/networks.md',
  'docs/terraform.md',
  'docs/sdks.md',
] as const

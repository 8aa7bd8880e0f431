/** The result of a stage of the Dockerfile, for images that are built without Docker: pure. It ignores the commands
 *  that the stage runs; what the stage copies from the sources, and how its processes start, is as written there. */

export interface Stage {
  /** Paths of the repository that it copies into the working folder; those that another stage builds as well, but for
   *  the dependencies. */
  readonly copies: readonly string[]
  /** Patterns of files that are removed from the dependencies. */
  readonly leftOut: readonly string[]
  readonly config: {
    readonly Entrypoint: readonly string[]
    readonly Cmd: readonly string[]
    readonly Env: readonly string[]
    readonly User: string
    readonly WorkingDir: string
  }
}

interface Instruction {
  readonly word: string
  readonly rest: string
}

/** Throws for a stage that does not exist. */
export function readStage(dockerfile: string, target: string): Stage {
  const stages = stagesOf(dockerfile)
  const chain: Instruction[] = []
  for (let name: string | undefined = target; name !== undefined; ) {
    const stage: (typeof stages)[number] | undefined = stages.find((each) => each.name === name)
    if (stage === undefined) break
    chain.unshift(...stage.instructions)
    name = stage.parent
  }
  if (chain.length === 0) throw new Error(`the Dockerfile has no stage ${target}`)
  const all = (word: string) => chain.filter((each) => each.word === word).map(({ rest }) => rest)
  const last = (word: string) => all(word).at(-1) ?? ''
  const copied = all('COPY')
    .map((rest) => rest.replace(/^--from=\S+ \/svccloud\//, ''))
    .filter((path) => !path.startsWith('node_modules '))
    .map((rest) => /^(\S+) \.\/(\1)?$/.exec(rest)?.[1] ?? fail(`COPY ${rest} moves what it copies`))
  return {
    copies: copied,
    leftOut: (/^ && rm -rf (node_modules\/.*)$/m.exec(dockerfile)?.[1] ?? '').split(' '),
    config: {
      Entrypoint: JSON.parse(last('ENTRYPOINT') || '[]') as string[], // as Docker reads it
      Cmd: JSON.parse(last('CMD') || '[]') as string[], // likewise
      Env: ['PATH=/usr/local/bin:/usr/bin:/bin', ...all('ENV')],
      User: last('USER'),
      WorkingDir: last('WORKDIR'),
    },
  }
}

function fail(why: string): never {
  throw new Error(why)
}

function stagesOf(dockerfile: string) {
  const stages: { name: string; parent: string; instructions: Instruction[] }[] = []
  for (const line of dockerfile.replaceAll('\\\n', ' ').split('\n')) {
    const [, word = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
    const [, parent = '', name = ''] = word === 'FROM' ? (/^(\S+) AS (\S+)$/.exec(rest) ?? []) : []
    if (word === 'FROM') stages.push({ name, parent, instructions: [] })
    else if (word !== '') stages.at(-1)?.instructions.push({ word, rest: rest.trim() })
  }
  return stages
}

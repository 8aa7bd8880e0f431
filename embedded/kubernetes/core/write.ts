/** Create and replace. */
import { checkType, parseObject } from './body.ts'
import { change, renderOutcome, existing, withNamespaceOf, type Write } from './change.ts'
import type { Answer, Engine } from './engine.ts'
import { asString } from './json.ts'
import { generatedName } from './metadata.ts'
import { looseMetadata } from './object.ts'
import type { ReadTarget } from './read.ts'
import { fromScale } from './scale.ts'
import { uncheckedRules } from './shape.ts'
import { alreadyExists, badRequest, fieldRequired, invalid, Refusal, unexpected } from './status.ts'

const GENERATE_MOST_ATTEMPTS = 8

/** Throws 409 when the name exists; a generated name is replaced by another one. */
export async function create(engine: Engine, write: Write): Promise<Answer> {
  const { target, request } = write
  const { definition } = target
  const { object, duplicates } = parseObject(request.body, request.headers['content-type'])
  checkType(object, definition, request.body)
  const draft = withNamespaceOf(object, target)
  const metadata = looseMetadata(draft)
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '')
    throw unexpected('resourceVersion should not be set on objects to be created')
  const base = asString(metadata.generateName)
  const fixed = asString(metadata.name)
  if (fixed === '' && base === '') {
    throw invalid(definition, '', [
      fieldRequired('metadata.name', 'name or generateName is required'),
      ...uncheckedRules(definition),
    ])
  }
  for (let attempt = 1; ; attempt++) {
    const name = fixed === '' ? generatedName(base, engine.random) : fixed
    try {
      return await renderOutcome(
        engine,
        write,
        await change(
          engine,
          { ...write, target: { ...target, name } },
          {
            make: (current) => {
              if (current) throw alreadyExists(definition, name)
              return { draft, source: 'body', duplicates }
            },
          },
        ),
      )
    } catch (error) {
      const isTaken = error instanceof Refusal && error.reason === 'AlreadyExists'
      if (fixed !== '' || !isTaken || attempt >= GENERATE_MOST_ATTEMPTS) throw error
    }
  }
}

/** Throws 409 when the object has changed since it was read. */
export async function replace(engine: Engine, write: Write): Promise<Answer> {
  const { target, request } = write
  const { object, duplicates } = parseObject(request.body, request.headers['content-type'])
  if (target.subresource === 'scale') {
    return renderOutcome(
      engine,
      write,
      await change(engine, write, {
        make: (current) => ({
          draft: fromScale(target.definition, existing(target, current), object),
          source: 'body',
          duplicates,
        }),
      }),
    )
  }
  checkType(object, target.definition, request.body)
  const draft = withNamespaceOf(object, target)
  const name = asString(looseMetadata(draft).name)
  if (name !== target.name) {
    throw badRequest(
      name === ''
        ? 'name must be provided'
        : `the name of the object (${name}) does not match the name on the URL (${target.name})`,
    )
  }
  return renderOutcome(
    engine,
    write,
    await change(engine, write, {
      make: (current) => {
        existing(target, current)
        return { draft, source: 'body', duplicates, isRevisionNeeded: needsRevision(target) }
      },
    }),
  )
}

/** Kinds that may be replaced without the revision that was read. */
const needsRevision = ({ definition: { isCustom, resource } }: ReadTarget): boolean =>
  isCustom || resource === 'leases' || resource === 'customresourcedefinitions'

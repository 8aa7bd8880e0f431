/** Requests that are asked as dry runs first. */
import { expect } from 'vitest'
import { DRY_RUN_MEDIA_TYPE } from '../../kit/http/dry-run.ts'
import type { Route } from '../../kit/http/route.ts'
import { ROUTES } from '../../resources/index.ts'
import type { Cloud, Person, Reply, SendOptions } from './cloud.ts'
import { differenceOf, dumpOf } from './dump.ts'

interface Asked {
  readonly method: string
  readonly path: string
  readonly options?: SendOptions
  /** False: what is stored is not compared. */
  readonly isCompared?: boolean
}

/** Sends the request as a dry run and then really; answers as the request is. Throws when the dry run has changed
 *  something, is refused otherwise than the request, or shows another answer. */
export async function askTwice(
  { cloud, person }: { readonly cloud: Cloud; readonly person: Person },
  { method, path, options = {}, isCompared = true }: Asked,
): Promise<Reply> {
  const before = isCompared ? await dumpOf(cloud) : undefined
  const tried = await person.send(method, `${path}${path.includes('?') ? '&' : '?'}dry_run=true`, options)
  if (before !== undefined)
    expect(differenceOf(before, await dumpOf(cloud)), `a dry run of ${method} ${path}: ${tried.text}`).toEqual([])
  const real = await person.send(method, path, options)
  const what = `${method} ${path}: ${tried.text}, and then ${real.text}`
  if (real.status >= 400) {
    expect(refusalIn(tried), what).toEqual(refusalIn(real))
    return real
  }
  expect([tried.status, tried.headers['content-type']], what).toEqual([200, DRY_RUN_MEDIA_TYPE])
  const { secretFields = [] } = routeOf(method, path) ?? {}
  const shown = Object.keys(real.body).filter((name) => !secretFields.includes(name))
  expect(Object.keys(tried.body['would'] ?? {}), what).toEqual(shown)
  return real
}

/** The route of a request of customers. */
export const routeOf = (method: string, path: string): Route | undefined =>
  ROUTES.find(
    (route) =>
      route.method === method &&
      new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path.split('?')[0] ?? ''),
  )

const refusalIn = ({ status, body: { detail, reason, errors } }: Reply) => ({ status, detail, reason, errors })

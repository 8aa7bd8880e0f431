/** Pages of nouns at their addresses: the tab and what is filled in are parts of the address. */
import { useParams, useSearch } from '@tanstack/react-router'
import { lazy, type ReactNode, Suspense } from 'react'
import { ListPage } from '../nouns/list-page.tsx'
import { hrefOf, type Noun, type Values } from '../nouns/noun.ts'
import { useGo } from './go.ts'
import { Loading } from '../ui/layout.tsx'

// Not needed for a list, which most visits begin with.
const CreatePage = lazy(async () => ({ default: (await import('../nouns/create-page.tsx')).CreatePage }))
const ItemPage = lazy(async () => ({ default: (await import('../nouns/item-page.tsx')).ItemPage }))

interface NounRouteProps {
  readonly noun: Noun
}

const useQuery = (): Readonly<Record<string, unknown>> => useSearch({ strict: false })

export const ListRoute = ({ noun }: NounRouteProps): ReactNode => <ListPage noun={noun} />

export function CreateRoute({ noun }: NounRouteProps): ReactNode {
  const query = useQuery()
  const known = new Set((noun.form ?? []).map(({ name }) => name))
  const given: Values = Object.fromEntries(Object.entries(query).filter(([name]) => known.has(name)))
  return (
    <Suspense fallback={<Loading />}>
      <CreatePage noun={noun} given={given} />
    </Suspense>
  )
}

export function ItemRoute({ noun }: NounRouteProps): ReactNode {
  const { id = '' }: { readonly id?: string } = useParams({ strict: false })
  const { tab } = useQuery()
  const go = useGo()
  return (
    <Suspense fallback={<Loading />}>
      <ItemPage
        key={id}
        noun={noun}
        id={id}
        tab={typeof tab === 'string' ? tab : 'overview'}
        onTab={(next) => go(next === 'overview' ? hrefOf(noun, { id }) : `${hrefOf(noun, { id })}?tab=${next}`)}
      />
    </Suspense>
  )
}

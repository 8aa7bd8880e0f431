/** Pages of nouns at their addresses: the tab and what is filled in are parts of the address. */
import { useParams, useSearch } from '@tanstack/react-router'
import { type ReactNode, Suspense } from 'react'
import { CreatePage } from '../nouns/create-page.tsx'
import { ItemPage } from '../nouns/item-page.tsx'
import { ListPage } from '../nouns/list-page.tsx'
import { hrefOf, type Noun, type Values } from '../nouns/noun.ts'
import { useGo } from './go.ts'
import { Loading } from '../ui/layout.tsx'

interface NounRouteProps {
  readonly noun: Noun
}

const useQuery = (): Readonly<Record<string, unknown>> => useSearch({ strict: false })

export const ListRoute = ({ noun }: NounRouteProps): ReactNode => <ListPage noun={noun} />

export function CreateRoute({ noun }: NounRouteProps): ReactNode {
  const query = useQuery()
  const known = new Set((noun.form ?? []).map(({ name }) => name))
  const given: Values = Object.fromEntries(Object.entries(query).filter(([name]) => known.has(name)))
  return <CreatePage noun={noun} given={given} />
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

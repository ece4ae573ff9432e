// Go makes its system calls itself: no library to interpose. Reads in.txt, writes, renames, removes,
// from several goroutines.
package main

import (
	"fmt"
	"io/ioutil"
	"os"
	"sync"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	text, err := ioutil.ReadFile("in.txt")
	must(err)
	must(os.WriteFile("go.txt", text, 0644))
	must(os.Rename("go.txt", "gone.txt"))
	must(os.Remove("data/b.txt"))
	file, err := os.OpenFile("old.txt", os.O_APPEND|os.O_WRONLY, 0)
	must(err)
	_, err = file.WriteString("appended")
	must(err)
	must(os.Chdir("data"))
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			_, err := os.ReadFile("a.txt")
			must(err)
			must(os.WriteFile(fmt.Sprintf("go%d.txt", i), []byte{byte(i)}, 0644))
		}(i)
	}
	all.Wait()
}
